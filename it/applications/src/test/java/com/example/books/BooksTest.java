package com.example.books;

import static org.assertj.core.api.Assertions.assertThat;

import com.example.it.Running;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** An application with a limited repository, which another bean has. */
@ExtendWith(OutputCaptureExtension.class)
class BooksTest {

    @Test
    void itsLimitIsKnownAtTheStartAndExact(CapturedOutput log) {
        try (Running books = new Running(Books.class)) {
            assertThat(log).contains("Rate limit books: token-bucket, rate 5/h, burst 5, policy reject");
            assertThat(books.sixCalls("/books/Momo")).containsExactly(200, 200, 200, 200, 200, 429);
        }
    }
}
