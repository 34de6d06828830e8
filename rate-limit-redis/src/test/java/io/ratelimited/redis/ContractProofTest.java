package io.ratelimited.redis;

import org.junit.jupiter.api.Tag;

@Tag("proof")
final class ContractProofTest extends RedisRateLimiterContractTest {

    @Override
    protected int schedules() {
        return 150;
    }
}
