package com.example.books;

import io.ratelimited.spring.RateLimited;
import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

interface BookRepository extends JpaRepository<Book, Long> {

    @RateLimited(name = "books", rate = "5/h")
    List<Book> findByTitle(String title);
}
