package com.example.apikeys;

import org.springframework.cache.annotation.Cacheable;
import org.springframework.stereotype.Component;

@Component
class ContractTable {
    /** Stands for: select limits from contract where tenant = ? */
    @Cacheable("contracts")
    public String limitOf(String tenant) {
        return tenant.startsWith("acme") ? "500/m burst 1000" : null;
    }
}
