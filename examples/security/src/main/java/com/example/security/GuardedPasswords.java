package com.example.security;

import io.ratelimited.spring.RateLimited;
import org.springframework.security.authentication.AuthenticationProvider;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.authentication.dao.DaoAuthenticationProvider;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.userdetails.UserDetailsService;
import org.springframework.stereotype.Component;

@Component
class GuardedPasswords implements AuthenticationProvider {
    private static final String NAME = "#login.name.toLowerCase(T(java.util.Locale).ROOT)";
    private static final String UNLESS_CORRECT = "#error == null ? 0 : 1";

    private final AuthenticationProvider passwords;

    GuardedPasswords(UserDetailsService users) {
        this.passwords = new DaoAuthenticationProvider(users);
    }

    @Override
    @RateLimited(name = "guesses-of-name", key = NAME, charge = UNLESS_CORRECT)
    @RateLimited(name = "guesses-of-address", key = "clientIp", charge = UNLESS_CORRECT)
    public Authentication authenticate(Authentication login) {
        return passwords.authenticate(login);
    }

    @Override
    public boolean supports(Class<?> authentication) {
        return UsernamePasswordAuthenticationToken.class.isAssignableFrom(authentication);
    }
}
