package dev.decree.agent;

import java.time.Duration;

/**
 * Limits the calls that an {@link Agent} makes to its {@link Cluster}.
 *
 * @param operationTimeout the maximum time of a call; a call that takes longer is interrupted, and its outcome is TIMEOUT
 * @param createsPerSecond the number of creates per second after the first {@code createBurst}; 0 means no limit. A create that would wait for
 *     longer than {@code operationTimeout} does not start
 * @param createBurst the number of creates that may begin at once
 */
public record Limits(Duration operationTimeout, double createsPerSecond, int createBurst) {
    /** Returns an operation timeout of 20 seconds, 20 creates a second and a burst of 100. */
    public static Limits defaults() {
        return new Limits(Duration.ofSeconds(20), 20, 100);
    }
}
