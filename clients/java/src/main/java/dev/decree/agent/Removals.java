package dev.decree.agent;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** The latest removals by UID. They stop older lists and states from restoring removed objects. The Agent's monitor guards them. */
final class Removals {
    /** The number of removals to remember. */
    private static final int MAX = 10_000;

    /** The version of a removal, and whether it was the outcome of a delete. */
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

    /** Returns the version of the removal, or 0. */
    long version(String uid) {
        return known.getOrDefault(uid, NONE).version();
    }

    boolean isAnswered(String uid) {
        return known.getOrDefault(uid, NONE).isAnswered();
    }

    /** Throws if removals since a mark may have been forgotten. */
    void check(long since) {
        if (since < forgotten) {
            throw new IllegalArgumentException("the mark is too old: take another one and list again");
        }
    }
}
