package dev.decree.agent;

import java.time.Duration;

/**
 * Bounds what an {@link Agent} asks of its {@link Cluster}.
 *
 * @param operationTimeout bounds each call; one that takes longer is interrupted, and answered with TIMEOUT
 * @param createsPerSecond how many creates begin in a second, where more than {@code createBurst} are asked for; 0 means no limit. A create that would wait for
 *     longer than {@code operationTimeout} is not started
 * @param createBurst how many creates begin at once
 */
public record Limits(Duration operationTimeout, double createsPerSecond, int createBurst) {
    /** Returns 20 seconds, 20 creates a second and 100 at once. */
    public static Limits defaults() {
        return new Limits(Duration.ofSeconds(20), 20, 100);
    }
}
