package dev.decree.agent;

import dev.decree.v1.FailureClass;
import java.time.Duration;
import java.util.Objects;

/** Says that an operation had no effect, and why. */
public final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    private final FailureClass kind;
    private final Duration retryAfter;

    /** The message of a failed create becomes the message of the condition ReplicaFailure. */
    public Failure(FailureClass kind, String message) {
        this(kind, message, Duration.ZERO);
    }

    /** Adds the delay before the next attempt, for the class THROTTLED; zero leaves the delay to the server. */
    public Failure(FailureClass kind, String message, Duration retryAfter) {
        super(message);
        this.kind = Objects.requireNonNull(kind);
        this.retryAfter = Objects.requireNonNull(retryAfter);
    }

    /** Returns the class, which decides how the server reacts. */
    public FailureClass kind() {
        return kind;
    }

    /** Returns the delay before the next attempt. */
    public Duration retryAfter() {
        return retryAfter;
    }
}
