package dev.decree.agent;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** The latest removals by uid, which keep lists and states that began before them from bringing back what is gone. Guarded by the Agent's monitor. */
final class Removals {
    /** How many are remembered. */
    private static final int MAX = 10_000;

    /** At which version something was removed, and whether a delete of ours was answered so. */
    private record Removal(long version, boolean isAnswered) {}

    private static final Removal NONE = new Removal(0, false);

    private final Map<String, Removal> known = new LinkedHashMap<>();
    private long forgotten;

    void add(String uid, long version, boolean isAnswered) {
        known.remove(uid);
        known.put(uid, new Removal(version, isAnswered));
        if (known.size() > MAX) {
            Iterator<Removal> oldest = known.values().iterator();
            forgotten = oldest.next().version();
            oldest.remove();
        }
    }

    void discard(String uid) {
        known.remove(uid);
    }

    /** Returns when it was removed, or 0. */
    long version(String uid) {
        return known.getOrDefault(uid, NONE).version();
    }

    boolean isAnswered(String uid) {
        return known.getOrDefault(uid, NONE).isAnswered();
    }

    /** Throws where removals since a mark may have been forgotten. */
    void check(long since) {
        if (since < forgotten) {
            throw new IllegalArgumentException("the mark is too old: take another one and list again");
        }
    }
}
