package dev.decree.agent;

import java.time.Duration;

/** A token bucket for creates: a burst at once, and then a number per second. 0 a second means no limit. The Agent's monitor guards it. */
final class Pace {
    private static final double NANOS = 1e9;

    private final double perSecond;
    private final double burst;
    /** If negative, the number of creates that wait. */
    private double tokens;

    private Long at;

    Pace(double perSecond, int burst) {
        this.perSecond = perSecond;
        this.burst = burst;
        this.tokens = burst;
    }

    /** Takes a token and returns how long the create must wait. If the wait is longer than `longest`, takes no token and returns null. */
    Duration reserve(long nowNanos, Duration longest) {
        if (perSecond <= 0) {
            return Duration.ZERO;
        }
        if (at != null) {
            tokens = Math.min(burst, tokens + (nowNanos - at) / NANOS * perSecond);
        }
        at = nowNanos;
        Duration wait = Duration.ofNanos((long) (Math.max(0, 1 - tokens) / perSecond * NANOS));
        if (wait.compareTo(longest) > 0) {
            return null;
        }
        tokens--;
        return wait;
    }

    String refusal() {
        String rate = perSecond == Math.rint(perSecond) ? Long.toString((long) perSecond) : Double.toString(perSecond);
        return "pace: " + rate + " creates a second are allowed, and more are waiting than may start in time";
    }
}
