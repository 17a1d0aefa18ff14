package dev.decree.agent;

import dev.decree.v1.FailureClass;

/** Says that an operation had no effect, and why. */
public final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    private final FailureClass kind;

    /** The message of a create becomes that of the condition ReplicaFailure. */
    public Failure(FailureClass kind, String message) {
        super(message);
        this.kind = kind;
    }

    /** Returns what the server acts by. */
    public FailureClass kind() {
        return kind;
    }
}
