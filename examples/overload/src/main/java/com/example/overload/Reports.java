package com.example.overload;

import org.springframework.stereotype.Service;

/** The work that takes long when there is too much of it. */
@Service
class Reports {

    String create() {
        return "report";
    }
}
