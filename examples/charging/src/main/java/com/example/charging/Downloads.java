package com.example.charging;

import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import java.io.IOException;
import java.io.InputStream;
import java.security.Principal;
import org.springframework.core.io.ClassPathResource;
import org.springframework.core.io.Resource;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

@RestController
class Downloads {
    private final RateLimits limits;

    Downloads(RateLimits limits) {
        this.limits = limits;
    }

    @GetMapping("/reports/{id}")
    StreamingResponseBody report(@PathVariable long id, Principal customer) throws IOException {
        Resource report = new ClassPathResource("/reports/" + id, Downloads.class);
        ReservedPermits bytes = limits.reserve("download-bytes", customer, Math.max(1, Math.min(report.contentLength(), 1_000_000)));
        return body -> {
            long sent = 0;
            try (InputStream content = report.getInputStream()) {
                byte[] buffer = new byte[8192];
                for (int length; (length = content.read(buffer)) > 0; sent += length) {
                    body.write(buffer, 0, length);
                }
            } finally {
                bytes.settle(sent);
                bytes.close();
            }
        };
    }
}
