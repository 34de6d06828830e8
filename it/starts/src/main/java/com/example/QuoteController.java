package com.example;

@README.md java@
