package io.ratelimited.redis.connection;

/** Commands that no caller waits for; those first that are sent first and, where too many are kept, dropped last. */
public enum DeliveryKind {
    /** A call in flight has ended. Otherwise its place stays taken until its lease ends. */
    END(true),
    /** A call gives back permits that it has not used. Otherwise they stay spent until they lapse. */
    GIVE_BACK(false),
    /** Permits that were used without being reserved in Redis. Otherwise they are given away again. */
    CHARGE(false),
    /** A call in flight still runs. Its node says so again within seconds. */
    REGISTRATION(true);

    /** Running it twice does no harm, so that it is sent again when it may have been lost. */
    final boolean isRepeatable;

    DeliveryKind(boolean isRepeatable) {
        this.isRepeatable = isRepeatable;
    }
}
