package com.example.login;

@docs/stop-guessing-passwords.md java@
