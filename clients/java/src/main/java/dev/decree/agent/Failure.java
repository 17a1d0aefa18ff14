package dev.decree.agent;

import dev.decree.v1.FailureClass;
import java.time.Duration;
import java.util.Objects;

/** Says that an operation had no effect, and why. */
public final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    private final FailureClass kind;
    private final Duration retryAfter;

    /** The message of a create becomes that of the condition ReplicaFailure. */
    public Failure(FailureClass kind, String message) {
        this(kind, message, Duration.ZERO);
    }

    /** Says also how long to wait before the next attempt, for the class THROTTLED; zero says nothing. */
    public Failure(FailureClass kind, String message, Duration retryAfter) {
        super(message);
        this.kind = Objects.requireNonNull(kind);
        this.retryAfter = Objects.requireNonNull(retryAfter);
    }

    /** Returns what the server acts by. */
    public FailureClass kind() {
        return kind;
    }

    /** Returns how long to wait before the next attempt. */
    public Duration retryAfter() {
        return retryAfter;
    }
}
