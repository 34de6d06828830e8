package com.example.books;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;

@Entity
public class Book {

    @Id
    public Long id;

    public String title;
}
