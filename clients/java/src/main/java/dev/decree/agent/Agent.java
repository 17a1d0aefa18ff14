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
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.Logger;

/**
 * Implements the agent's side of a session with a Decree server. A controller only reports its objects, and creates and removes pods.
 *
 * <p>An Agent holds the view: the current ReplicaSets and pods. The controller reports changes and provides a {@link Cluster}. The Agent is for a
 * process that is itself the cluster and runs as a single instance: the Agent has no Lease, and its epoch is 0. docs/protocol.md specifies the rules.
 *
 * <p>Its methods are thread-safe.
 */
public final class Agent {
    static final Logger LOGGER = Logger.getLogger("dev.decree.agent");
    private static final Duration FIRST_WAIT = Duration.ofMillis(100);
    private static final Duration LAST_WAIT = Duration.ofSeconds(2);
    private static final Duration LONGEST_WAIT = Duration.ofMinutes(5);

    final Cluster cluster;
    final Hello hello;
    final Limits limits;
    // The Agent's monitor guards all fields below, and those of sessions.
    final Map<String, Pod> pods = new LinkedHashMap<>();
    final Map<String, ReplicaSet> replicaSets = new LinkedHashMap<>();
    /** The UID of the ReplicaSet for each pod that is being created, by namespace and name. */
    final Map<List<String>, String> creating = new HashMap<>();

    final Set<String> deleting = new HashSet<>();
    /** The UIDs that were removed before their create returned. */
    final List<String> removed = new ArrayList<>();

    final Removals gonePods = new Removals();
    final Pace pace;
    Session session;
    private final Removals goneReplicaSets = new Removals();
    /** When each ReplicaSet was applied last. */
    private final Map<String, Long> applied = new HashMap<>();

    private long version;
    private boolean stopping;

    /** Creates an Agent for a cluster whose UID is unique on the server. */
    public Agent(String clusterUid, Cluster cluster) {
        this(Hello.newBuilder().setClusterUid(clusterUid).setMode(Mode.MODE_ENFORCE).build(), cluster);
    }

    /** Creates an Agent with the cluster, mode and options of this Hello. */
    public Agent(Hello hello, Cluster cluster) {
        this(hello, cluster, Limits.defaults());
    }

    /** Creates an Agent with these limits. An unspecified mode means ENFORCE. */
    public Agent(Hello hello, Cluster cluster, Limits limits) {
        this.cluster = cluster;
        this.limits = limits;
        this.pace = new Pace(limits.createsPerSecond(), limits.createBurst());
        Mode mode = hello.getMode() == Mode.MODE_UNSPECIFIED ? Mode.MODE_ENFORCE : hello.getMode();
        this.hello = hello.toBuilder()
                .setMode(mode)
                .setProtocolMin(1)
                .setProtocolMax(1)
                .setAgentInstance(UUID.randomUUID().toString())
                .build();
    }

    /**
     * Adds or updates a pod. The last applied state counts, so never apply a state that was read before a change you already reported; for lists, use
     * {@link #syncPods}. The Agent ignores a pod whose delete has succeeded.
     */
    public synchronized void applyPod(Pod pod) {
        if (!gonePods.isAnswered(pod.getUid())) {
            change(Event.newBuilder().setPodApplied(storePod(pod)));
        }
    }

    /** Removes a pod from the view. */
    public synchronized void removePod(String uid) {
        if (pods.containsKey(uid)) {
            dropPod(uid);
        } else if (!gonePods.isAnswered(uid)) {
            gonePods.add(uid, ++version, false);
        }
    }

    /**
     * Adds or updates a ReplicaSet. Without a status, the last written status stays. The generation must grow with each change.
     *
     * <p>Like the Kubernetes API server, it refuses a ReplicaSet whose selector is empty, is invalid, or does not match the labels of the
     * template. The view then keeps the earlier ReplicaSet.
     *
     * @throws IllegalArgumentException if it refuses the ReplicaSet; the message names the field
     */
    public synchronized void applyReplicaSet(ReplicaSet replicaSet) {
        Check.replicaSet(replicaSet);
        ReplicaSet known = replicaSets.get(replicaSet.getUid());
        boolean keepsStatus = known != null && known.hasStatus() && !replicaSet.hasStatus();
        takeReplicaSet(keepsStatus ? replicaSet.toBuilder().setStatus(known.getStatus()).build() : replicaSet);
    }

    /** Removes a ReplicaSet from the view. */
    public synchronized void removeReplicaSet(String uid) {
        if (replicaSets.containsKey(uid)) {
            dropReplicaSet(uid);
        } else {
            goneReplicaSets.add(uid, ++version, false);
        }
    }

    /** Sets the desired number of pods of a ReplicaSet, and increments its generation. */
    public synchronized void scale(String uid, int replicas) {
        ReplicaSet known = replicaSets.get(uid);
        if (known != null) {
            takeReplicaSet(known.toBuilder().setReplicas(replicas).setGeneration(known.getGeneration() + 1).build());
        }
    }

    /** Returns the current position. Take it before you begin to list, and pass it to {@link #syncPods} or {@link #syncReplicaSets} with the list. */
    public synchronized long mark() {
        return version;
    }

    /**
     * Replaces the pods of the view with a complete list that began after the mark. Changes since the mark win: a pod created or changed since then
     * stays, and a pod removed since then does not come back. Otherwise this stores each listed pod and removes all others.
     *
     * @throws IllegalArgumentException for pods without a UID, after storing the others, and for a mark that is too old, which changes nothing
     */
    public synchronized void syncPods(Collection<Pod> listed, long since) {
        gonePods.check(since);
        Set<String> uids = new HashSet<>();
        List<String> faults = new ArrayList<>();
        for (Pod pod : listed) {
            uids.add(pod.getUid());
            if (pod.getUid().isEmpty()) {
                faults.add("pod " + pod.getNamespace() + "/" + pod.getName() + ": uid: it is empty");
            } else {
                syncPod(pod, since);
            }
        }
        for (Pod known : List.copyOf(pods.values())) {
            if (!uids.contains(known.getUid()) && Long.parseLong(known.getResourceVersion()) <= since) {
                dropPod(known.getUid());
            }
        }
        refuse(faults);
    }

    private void syncPod(Pod listed, long since) {
        Pod known = pods.get(listed.getUid());
        boolean isOld = known != null && Long.parseLong(known.getResourceVersion()) > since;
        if (isOld || gonePods.version(listed.getUid()) > since) {
            return;
        }
        Pod.Builder pod = listed.toBuilder();
        if (known != null) {
            pod.setResourceVersion(known.getResourceVersion());
            if (!pod.hasCreated()) {
                pod.setCreated(known.getCreated());
            }
        }
        if (!pod.build().equals(known)) {
            change(Event.newBuilder().setPodApplied(storePod(pod.build())));
        }
    }

    /**
     * Replaces the ReplicaSets of the view with a complete list, by the rules of {@link #syncPods}. If {@link #applyReplicaSet} would refuse one, its
     * earlier state stays.
     *
     * @throws IllegalArgumentException for refused ReplicaSets, after storing the others, and for a mark that is too old, which changes nothing
     */
    public synchronized void syncReplicaSets(Collection<ReplicaSet> listed, long since) {
        goneReplicaSets.check(since);
        Set<String> uids = new HashSet<>();
        List<String> faults = new ArrayList<>();
        for (ReplicaSet one : listed) {
            uids.add(one.getUid());
            try {
                Check.replicaSet(one);
                if (applied.getOrDefault(one.getUid(), 0L) <= since && goneReplicaSets.version(one.getUid()) <= since) {
                    syncReplicaSet(one, since);
                }
            } catch (IllegalArgumentException fault) {
                faults.add(fault.getMessage());
            }
        }
        for (String uid : List.copyOf(replicaSets.keySet())) {
            if (!uids.contains(uid) && applied.get(uid) <= since) {
                dropReplicaSet(uid);
            }
        }
        refuse(faults);
    }

    /** Stores a listed ReplicaSet. A status that was written since the mark is newer than the listed one. */
    private void syncReplicaSet(ReplicaSet listed, long since) {
        ReplicaSet known = replicaSets.get(listed.getUid());
        ReplicaSet.Builder changed = listed.toBuilder();
        if (known != null) {
            boolean keepsStatus = !listed.hasStatus() || Long.parseLong(known.getResourceVersion()) > since;
            if (keepsStatus && known.hasStatus()) {
                changed.setStatus(known.getStatus());
            }
            changed.setResourceVersion(known.getResourceVersion());
        }
        if (!changed.build().equals(known)) {
            takeReplicaSet(changed.build());
        }
    }

    private static void refuse(List<String> faults) {
        if (!faults.isEmpty()) {
            throw new IllegalArgumentException(String.join("; ", faults));
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

    /** Makes {@link #run} send the outcomes in flight, close the stream and return. */
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

    // The methods below run with the monitor held. Objects of the view are immutable, so frames may refer to them.

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
        gonePods.discard(stored.getUid());
        return stored;
    }

    ReplicaSet storeReplicaSet(ReplicaSet replicaSet) {
        ReplicaSet stored = replicaSet.toBuilder().setResourceVersion(nextVersion()).build();
        replicaSets.put(stored.getUid(), stored);
        return stored;
    }

    /** Removes pods that were gone before their creates returned. The outcome shows the pod, and an event then removes it. */
    void dropRemoved() {
        removed.stream().filter(pods::containsKey).forEach(this::dropPod);
        removed.clear();
    }

    /** Counts the active pods of a ReplicaSet. */
    long active(String owner) {
        return pods.values().stream().filter(pod -> pod.getController().getUid().equals(owner) && isActive(pod)).count();
    }

    boolean isActive(Pod pod) {
        boolean ended = pod.getPhase() == PodPhase.POD_PHASE_SUCCEEDED || pod.getPhase() == PodPhase.POD_PHASE_FAILED;
        return !ended && !pod.hasDeleted() && !deleting.contains(pod.getUid());
    }

    private void takeReplicaSet(ReplicaSet replicaSet) {
        change(Event.newBuilder().setReplicaSetApplied(storeReplicaSet(replicaSet)));
        applied.put(replicaSet.getUid(), version);
        goneReplicaSets.discard(replicaSet.getUid());
    }

    private void dropPod(String uid) {
        Pod known = pods.remove(uid);
        tellDeleted(Kind.KIND_POD, known.getNamespace(), known.getName(), uid);
        gonePods.add(uid, version, false);
    }

    private void dropReplicaSet(String uid) {
        ReplicaSet known = replicaSets.remove(uid);
        applied.remove(uid);
        tellDeleted(Kind.KIND_REPLICA_SET, known.getNamespace(), known.getName(), uid);
        goneReplicaSets.add(uid, version, false);
    }

    private void tellDeleted(Kind kind, String namespace, String name, String uid) {
        ObjectRef ref = ObjectRef.newBuilder().setNamespace(namespace).setName(name).setUid(uid).build();
        change(Event.newBuilder()
                .setDeleted(Deleted.newBuilder().setKind(kind).setObject(ref).setResourceVersion(nextVersion())));
    }

    /** Sends an event. Without a session it sends nothing, because the next session begins with lists. */
    void change(Event.Builder event) {
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
