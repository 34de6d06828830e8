package com.example.apikeys;

import org.springframework.stereotype.Component;

@Component("contracts")
class Contracts {
    private final ContractTable table;

    Contracts(ContractTable table) {
        this.table = table;
    }

    public String limitOf(String tenant) {
        try {
            return table.limitOf(tenant);
        } catch (RuntimeException ex) {
            return null;
        }
    }
}
