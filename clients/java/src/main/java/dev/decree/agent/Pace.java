package dev.decree.agent;

import java.time.Duration;

/** A token bucket that creates take from: so many at once, and then so many a second. 0 a second means no limit. Guarded by the Agent's monitor. */
final class Pace {
    private static final double NANOS = 1e9;

    private final double perSecond;
    private final double burst;
    /** Below 0, so many creates wait. */
    private double tokens;

    private Long at;

    Pace(double perSecond, int burst) {
        this.perSecond = perSecond;
        this.burst = burst;
        this.tokens = burst;
    }

    /** Takes a token and returns how long its create has to wait. Where that is longer than `longest`, takes none and returns null. */
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
