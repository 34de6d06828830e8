package io.ratelimited.redis;

import org.junit.jupiter.api.Tag;

@Tag("proof")
final class BlockContractProofTest extends RedisBlockContractTest {

    @Override
    protected int timelines() {
        return 100;
    }
}
