package dev.decree.agent;

import com.google.protobuf.Timestamp;
import dev.decree.v1.DecisionServiceGrpc;
import dev.decree.v1.Deleted;
import dev.decree.v1.Event;
import dev.decree.v1.Events;
import dev.decree.v1.Hello;
import dev.decree.v1.Kind;
import dev.decree.v1.Mode;
import dev.decree.v1.ObjectRef;
import dev.decree.v1.Pod;
import dev.decree.v1.PodPhase;
import dev.decree.v1.ReconcileRequest;
import dev.decree.v1.ReplicaSet;
import io.grpc.Channel;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.Logger;

/**
 * Keeps the rules of a session with a Decree server, so that a controller is left with its own things: what there is, and how one of them is made and removed.
 *
 * <p>An Agent holds the view: the ReplicaSets and pods as they are. The controller tells it what it observes and provides a {@link Cluster}. The Agent is meant
 * for a process that is itself the cluster, one at a time: it has no Lease, and its epoch is 0. docs/protocol.md specifies the rules.
 *
 * <p>Its methods may be called at any time, from any thread.
 */
public final class Agent {
    static final Logger LOGGER = Logger.getLogger("dev.decree.agent");
    private static final Duration FIRST_WAIT = Duration.ofMillis(100);
    private static final Duration LAST_WAIT = Duration.ofSeconds(2);
    private static final Duration LONGEST_WAIT = Duration.ofMinutes(5);

    final Cluster cluster;
    final Hello hello;
    // Everything below is guarded by the Agent's monitor, as is what sessions have.
    final Map<String, Pod> pods = new LinkedHashMap<>();
    final Map<String, ReplicaSet> replicaSets = new LinkedHashMap<>();
    /** The uids of the ReplicaSets whose pods are being created, one each. */
    final List<String> creating = new ArrayList<>();

    final Set<String> deleting = new HashSet<>();
    Session session;
    private final Set<String> removed = new HashSet<>();
    private long version;
    private boolean stopping;

    /** Makes an Agent for the cluster of that uid, which no other cluster of the server has. */
    public Agent(String clusterUid, Cluster cluster) {
        this(Hello.newBuilder().setClusterUid(clusterUid).setMode(Mode.MODE_ENFORCE).build(), cluster);
    }

    /** Makes an Agent that says a Hello with these cluster, mode and options. */
    public Agent(Hello hello, Cluster cluster) {
        this.cluster = cluster;
        this.hello = hello.toBuilder()
                .setProtocolMin(1)
                .setProtocolMax(1)
                .setAgentInstance(UUID.randomUUID().toString())
                .build();
    }

    /** Takes a pod as it is: a new one, or one that changed. */
    public synchronized void applyPod(Pod pod) {
        change(Event.newBuilder().setPodApplied(storePod(pod)));
    }

    /** Takes note that a pod is gone. */
    public synchronized void removePod(String uid) {
        if (pods.containsKey(uid)) {
            dropPod(uid);
        } else if (!creating.isEmpty()) {
            removed.add(uid);
        }
    }

    /** Takes a ReplicaSet as it is. Without a status it keeps the one that was written last. Its generation must grow with each change. */
    public synchronized void applyReplicaSet(ReplicaSet replicaSet) {
        ReplicaSet known = replicaSets.get(replicaSet.getUid());
        boolean keepsStatus = known != null && known.hasStatus() && !replicaSet.hasStatus();
        ReplicaSet changed = keepsStatus ? replicaSet.toBuilder().setStatus(known.getStatus()).build() : replicaSet;
        change(Event.newBuilder().setReplicaSetApplied(storeReplicaSet(changed)));
    }

    /** Takes note that a ReplicaSet is gone. */
    public synchronized void removeReplicaSet(String uid) {
        ReplicaSet known = replicaSets.remove(uid);
        if (known != null) {
            tellDeleted(Kind.KIND_REPLICA_SET, known.getNamespace(), known.getName(), uid);
        }
    }

    /** Sets how many pods a ReplicaSet wants, and its next generation. */
    public synchronized void scale(String uid, int replicas) {
        ReplicaSet known = replicaSets.get(uid);
        if (known != null) {
            applyReplicaSet(known.toBuilder().setReplicas(replicas).setGeneration(known.getGeneration() + 1).build());
        }
    }

    /** Returns the pods of the view. */
    public synchronized List<Pod> pods() {
        return List.copyOf(pods.values());
    }

    /** Keeps a session with the server until {@link #stop}. */
    public void run(Channel channel) throws InterruptedException {
        Duration wait = FIRST_WAIT;
        while (!isStopping()) {
            Instant began = Instant.now();
            Session one = new Session(this);
            Throwable why = one.run(DecisionServiceGrpc.newStub(channel));
            LOGGER.info(() -> "session ended: " + why);
            if (Duration.between(began, Instant.now()).compareTo(wait) > 0) {
                wait = FIRST_WAIT;
            }
            Duration asked = min(max(one.after(), Session.retryAfter(why)), LONGEST_WAIT);
            rest(max(wait.multipliedBy(ThreadLocalRandom.current().nextLong(50, 100)).dividedBy(100), asked));
            wait = min(wait.multipliedBy(2), LAST_WAIT);
        }
    }

    /** Has {@link #run} answer what is in flight, close the stream and return. */
    public synchronized void stop() {
        stopping = true;
        if (session != null) {
            session.drain();
        }
        notifyAll();
    }

    synchronized boolean isStopping() {
        return stopping;
    }

    private synchronized void rest(Duration duration) throws InterruptedException {
        long until = System.nanoTime() + duration.toNanos();
        for (long left = duration.toMillis(); !stopping && left > 0; left = (until - System.nanoTime()) / 1_000_000) {
            wait(left);
        }
    }

    // What follows is called with the monitor held. Objects of the view are immutable, so frames may refer to them.

    String nextVersion() {
        return Long.toString(++version);
    }

    Pod storePod(Pod pod) {
        Pod.Builder builder = pod.toBuilder().setResourceVersion(nextVersion());
        if (!pod.hasCreated()) {
            builder.setCreated(Timestamp.newBuilder().setSeconds(Instant.now().getEpochSecond()));
        }
        Pod stored = builder.build();
        pods.put(stored.getUid(), stored);
        return stored;
    }

    ReplicaSet storeReplicaSet(ReplicaSet replicaSet) {
        ReplicaSet stored = replicaSet.toBuilder().setResourceVersion(nextVersion()).build();
        replicaSets.put(stored.getUid(), stored);
        return stored;
    }

    /** Removes pods that were gone before their creates had returned: the outcome says that they were there, and then an event that they are not. */
    void dropRemoved() {
        removed.removeIf(uid -> {
            boolean isKnown = pods.containsKey(uid);
            if (isKnown) {
                dropPod(uid);
            }
            return isKnown || creating.isEmpty();
        });
    }

    /** Counts the pods of a ReplicaSet that have neither ended nor are being deleted. */
    long active(String owner) {
        return pods.values().stream().filter(pod -> pod.getController().getUid().equals(owner) && isActive(pod)).count();
    }

    boolean isActive(Pod pod) {
        boolean ended = pod.getPhase() == PodPhase.POD_PHASE_SUCCEEDED || pod.getPhase() == PodPhase.POD_PHASE_FAILED;
        return !ended && !pod.hasDeleted() && !deleting.contains(pod.getUid());
    }

    private void dropPod(String uid) {
        Pod known = pods.remove(uid);
        tellDeleted(Kind.KIND_POD, known.getNamespace(), known.getName(), uid);
    }

    private void tellDeleted(Kind kind, String namespace, String name, String uid) {
        ObjectRef ref = ObjectRef.newBuilder().setNamespace(namespace).setName(name).setUid(uid).build();
        change(Event.newBuilder()
                .setDeleted(Deleted.newBuilder().setKind(kind).setObject(ref).setResourceVersion(nextVersion())));
    }

    /** Sends an event. Without a session nobody needs it: the next one begins with lists. */
    private void change(Event.Builder event) {
        if (session != null) {
            session.send(ReconcileRequest.newBuilder().setEvents(Events.newBuilder().addEvents(event)));
        }
    }

    private static Duration max(Duration one, Duration other) {
        return one.compareTo(other) > 0 ? one : other;
    }

    private static Duration min(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? one : other;
    }
}
