package dev.decree.agent;

import static dev.decree.agent.Answers.constant;
import static dev.decree.agent.Answers.controllerOf;
import static dev.decree.agent.Answers.done;
import static dev.decree.agent.Answers.donePod;
import static dev.decree.agent.Answers.failed;
import static dev.decree.agent.Answers.guarded;
import static dev.decree.agent.Answers.notStarted;

import dev.decree.v1.Batch;
import dev.decree.v1.Create;
import dev.decree.v1.Done;
import dev.decree.v1.FailureClass;
import dev.decree.v1.NotStartedCause;
import dev.decree.v1.ObjectRef;
import dev.decree.v1.Outcome;
import dev.decree.v1.Outcomes;
import dev.decree.v1.OwnerReference;
import dev.decree.v1.Pod;
import dev.decree.v1.ReconcileRequest;
import dev.decree.v1.ReplicaSet;
import dev.decree.v1.ReplicaSetStatus;
import dev.decree.v1.Victim;
import dev.decree.v1.Mode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;

/** Executes one batch: checks each operation immediately before it starts, and reports exactly one outcome for each. */
final class Work {
    private final Agent agent;
    private final Session session;
    private final Batch batch;

    Work(Agent agent, Session session, Batch batch) {
        this.agent = agent;
        this.session = session;
        this.batch = batch;
    }

    /** One operation. It makes its call, and returns a function that changes the view and makes the outcome, under the Agent's monitor. */
    private interface Operation extends Supplier<Supplier<Outcome.Builder>> {}

    void execute() {
        switch (batch.getActionCase()) {
            case CREATE -> slowStart(batch.getCreate());
            case DELETE -> round(0, operations(batch.getDelete().getVictimsList(), this::delete));
            case CLAIM -> {
                List<Operation> operations = operations(batch.getClaim().getAdoptsList(), this::adopt);
                operations.addAll(operations(batch.getClaim().getReleasesList(), this::release));
                round(0, operations);
            }
            case WRITE_STATUS -> round(0, operations(List.of(batch.getWriteStatus().getStatus()), this::writeStatus));
            default -> {} // The operations of an action of a later version are unknown, so they get no outcome.
        }
    }

    private static <T> List<Operation> operations(List<T> targets, Function<T, Supplier<Outcome.Builder>> method) {
        List<Operation> operations = new ArrayList<>();
        targets.forEach(target -> operations.add(() -> method.apply(target)));
        return operations;
    }

    /** Creates pods in rounds that double in size, and stops after the first round with a failure. */
    private void slowStart(Create create) {
        List<String> names = create.getNamesList();
        int begin = 0;
        boolean failed = false;
        for (int size = Math.max(create.getSlowStartInitial(), 1); begin < names.size() && !failed; size *= 2) {
            List<String> part = names.subList(begin, Math.min(begin + size, names.size()));
            failed = round(begin, operations(part, this::create));
            begin += part.size();
        }
        for (; begin < names.size(); begin++) {
            finish(begin, () -> notStarted(NotStartedCause.NOT_STARTED_CAUSE_SLOW_START, "an earlier create failed"));
        }
    }

    /** Executes operations concurrently, and returns whether one failed. */
    private boolean round(int begin, List<Operation> operations) {
        List<CompletableFuture<Boolean>> all = new ArrayList<>();
        for (int at = 0; at < operations.size(); at++) {
            Operation operation = operations.get(at);
            int number = begin + at;
            all.add(CompletableFuture.supplyAsync(() -> finish(number, operation.get()), session.calls));
        }
        return all.stream().map(CompletableFuture::join).reduce(false, Boolean::logicalOr);
    }

    /** Changes the view and sends the outcome, unless the session has ended. Returns whether the operation failed. */
    private boolean finish(int at, Supplier<Outcome.Builder> change) {
        synchronized (agent) {
            Outcome outcome = change.get().setBatchId(batch.getId()).setOperation(at).build();
            if (agent.session == session) {
                session.send(ReconcileRequest.newBuilder().setOutcomes(Outcomes.newBuilder().addOutcomes(outcome)));
            }
            agent.dropRemoved();
            return outcome.hasFailed();
        }
    }

    /** Returns the reason why no operation of the batch may start, or null. */
    private Outcome.Builder refused() {
        ObjectRef name = batch.getReplicaSet();
        ReplicaSet owner = agent.replicaSets.get(name.getUid());
        if (session.id.isEmpty() || !batch.getGuard().getSessionId().equals(session.id) || batch.getGuard().getEpoch() != 0) {
            return guarded("session: the batch is of another session or epoch");
        }
        if (agent.hello.getMode() != Mode.MODE_ENFORCE || session.draining || agent.session != session) {
            return notStarted(NotStartedCause.NOT_STARTED_CAUSE_NOT_ENFORCING, "the agent only watches, or drains");
        }
        if (owner == null || !owner.getNamespace().equals(name.getNamespace()) || !owner.getName().equals(name.getName())) {
            return guarded("reference: there is no such ReplicaSet");
        }
        if (owner.hasDeleted() && !batch.hasWriteStatus()) {
            return guarded("reference: the ReplicaSet is being deleted");
        }
        return null;
    }

    private ReplicaSet owner() {
        return agent.replicaSets.get(batch.getReplicaSet().getUid());
    }

    private int wanted() {
        return owner().hasReplicas() ? owner().getReplicas() : 1;
    }

    private Supplier<Outcome.Builder> create(String name) {
        Outcome.Builder waited = waitForPace(name);
        if (waited != null) {
            return constant(waited);
        }
        ReplicaSet owner;
        long began;
        synchronized (agent) {
            Outcome.Builder refused = refused();
            refused = refused == null ? refusedCreate(name) : refused;
            if (refused != null) {
                return constant(refused);
            }
            owner = owner();
            began = agent.mark();
            agent.creating.put(List.of(owner.getNamespace(), name), owner.getUid());
        }
        ObjectRef target = ObjectRef.newBuilder().setNamespace(owner.getNamespace()).setName(name).build();
        return Call.answered(
                agent,
                "create",
                target,
                () -> agent.cluster.create(owner, name),
                pod -> created(owner, name, began, pod),
                () -> agent.creating.remove(List.of(owner.getNamespace(), name)));
    }

    /** Waits until the create may begin, or the session drains or ends. Returns the reason why the create may not start, or null. */
    private Outcome.Builder waitForPace(String name) {
        Duration wait;
        synchronized (agent) {
            Outcome.Builder refused = refused();
            refused = refused == null ? refusedCreate(name) : refused;
            if (refused != null) {
                return refused;
            }
            wait = agent.pace.reserve(System.nanoTime(), agent.limits.operationTimeout());
        }
        if (wait == null) {
            return guarded(agent.pace.refusal());
        }
        try {
            session.stopped.await(wait.toNanos(), TimeUnit.NANOSECONDS);
            return null;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return notStarted(NotStartedCause.NOT_STARTED_CAUSE_NOT_ENFORCING, "the agent is interrupted");
        }
    }

    private Outcome.Builder refusedCreate(String name) {
        ReplicaSet owner = owner();
        if (!isNameOf(owner, name)) {
            return guarded("name: it is not the ReplicaSet's and five letters");
        }
        for (Pod pod : agent.pods.values()) {
            if (pod.getNamespace().equals(owner.getNamespace()) && pod.getName().equals(name)) {
                boolean isOurs = pod.getController().getUid().equals(owner.getUid()) && !pod.hasDeleted();
                return isOurs ? donePod(pod, true) : failed(FailureClass.FAILURE_CLASS_NAME_TAKEN, "the name is that of another pod");
            }
        }
        if (agent.creating.containsKey(List.of(owner.getNamespace(), name))) {
            return guarded("name: an earlier create of it has not returned");
        }
        long creating = agent.creating.values().stream().filter(owner.getUid()::equals).count();
        return agent.active(owner.getUid()) + creating < wanted() ? null : guarded("surplus: there are as many pods as desired");
    }

    /** Adds the created pod to the view, if the pod is valid. */
    private Outcome.Builder created(ReplicaSet owner, String name, long began, Pod pod) {
        String fault = Check.made(owner, name, pod, agent.pods);
        if (!fault.isEmpty()) {
            Agent.LOGGER.warning(() -> "create of " + owner.getNamespace() + "/" + name + " returned what cannot count: " + fault);
            return failed(FailureClass.FAILURE_CLASS_INVALID, fault);
        }
        // A state that was applied while the create ran is newer than the result of the create.
        Pod known = agent.pods.get(pod.getUid());
        if (known == null && agent.gonePods.version(pod.getUid()) > began) {
            agent.removed.add(pod.getUid());
        }
        Pod.Builder made = (known == null ? pod : known).toBuilder();
        made.setNamespace(owner.getNamespace()).setName(name).setController(controllerOf(owner));
        if (made.getLabelsCount() == 0) {
            made.putAllLabels(owner.getTemplateLabelsMap());
        }
        return donePod(agent.storePod(made.build()), false);
    }

    private Supplier<Outcome.Builder> delete(Victim victim) {
        Pod pod;
        synchronized (agent) {
            Outcome.Builder refused = refused();
            refused = refused == null ? refusedDelete(victim) : refused;
            if (refused != null) {
                return constant(refused);
            }
            pod = agent.pods.get(victim.getPod().getUid());
            agent.deleting.add(pod.getUid());
        }
        return Call.answered(
                agent,
                "delete",
                victim.getPod(),
                () -> {
                    agent.cluster.delete(pod, victim.getReason());
                    return pod;
                },
                gone -> {
                    agent.pods.remove(gone.getUid());
                    String version = agent.nextVersion();
                    agent.gonePods.add(gone.getUid(), agent.mark(), true);
                    return done(Done.newBuilder().setUid(gone.getUid()).setResourceVersion(version).setGone(true));
                },
                () -> agent.deleting.remove(pod.getUid()));
    }

    private Outcome.Builder refusedDelete(Victim victim) {
        Pod pod = find(victim.getPod());
        if (pod == null) {
            return failed(FailureClass.FAILURE_CLASS_NOT_FOUND, "there is no such pod");
        }
        if (!victim.getResourceVersion().isEmpty() && !victim.getResourceVersion().equals(pod.getResourceVersion())) {
            return failed(FailureClass.FAILURE_CLASS_PRECONDITION, "the pod has another version");
        }
        if (!pod.getController().getUid().equals(owner().getUid())) {
            return guarded("ownership: the ReplicaSet does not control the pod");
        }
        if (!agent.isActive(pod)) {
            return guarded("inactive: the pod has ended or is being deleted");
        }
        return agent.active(owner().getUid()) > wanted() ? null : guarded("shortage: no more pods are active than desired");
    }

    private Supplier<Outcome.Builder> adopt(ObjectRef target) {
        return claim(target, pod -> {
            boolean isOthers = pod.hasController() && !pod.getController().getUid().equals(owner().getUid());
            return isOthers ? guarded("ownership: the pod has another controller") : null;
        }, true);
    }

    private Supplier<Outcome.Builder> release(ObjectRef target) {
        return claim(target, pod -> pod.getController().getUid().equals(owner().getUid()) ? null : donePod(pod, false), false);
    }

    private Supplier<Outcome.Builder> claim(ObjectRef target, Function<Pod, Outcome.Builder> check, boolean adopts) {
        OwnerReference controller;
        Pod pod;
        synchronized (agent) {
            Outcome.Builder refused = refused();
            pod = find(target);
            if (refused == null) {
                refused = pod == null ? failed(FailureClass.FAILURE_CLASS_PRECONDITION, "there is no such pod") : check.apply(pod);
            }
            if (refused != null) {
                return constant(refused);
            }
            controller = adopts ? controllerOf(owner()) : null;
        }
        return Call.answered(
                agent,
                "setController",
                target,
                () -> {
                    agent.cluster.setController(pod, controller);
                    return pod.getUid();
                },
                uid -> claimed(uid, controller),
                () -> {});
    }

    private Outcome.Builder claimed(String uid, OwnerReference controller) {
        Pod known = agent.pods.get(uid);
        if (known == null) {
            return failed(FailureClass.FAILURE_CLASS_NOT_FOUND, "the pod is gone");
        }
        Pod.Builder changed = known.toBuilder().clearController();
        if (controller != null) {
            changed.setController(controller);
        }
        return donePod(agent.storePod(changed.build()), false);
    }

    private Supplier<Outcome.Builder> writeStatus(ReplicaSetStatus status) {
        ReplicaSet owner;
        synchronized (agent) {
            Outcome.Builder refused = refused();
            if (refused != null) {
                return constant(refused);
            }
            owner = owner();
        }
        return Call.answered(
                agent,
                "writeStatus",
                batch.getReplicaSet(),
                () -> {
                    agent.cluster.writeStatus(owner, status);
                    return owner.getUid();
                },
                uid -> written(uid, status),
                () -> {});
    }

    private Outcome.Builder written(String uid, ReplicaSetStatus status) {
        ReplicaSet known = agent.replicaSets.get(uid);
        if (known == null) {
            return failed(FailureClass.FAILURE_CLASS_NOT_FOUND, "the ReplicaSet is gone");
        }
        ReplicaSet changed = agent.storeReplicaSet(known.toBuilder().setStatus(status).build());
        return done(Done.newBuilder().setUid(uid).setResourceVersion(changed.getResourceVersion()).setReplicaSet(changed));
    }

    private Pod find(ObjectRef target) {
        Pod pod = agent.pods.get(target.getUid());
        boolean isSame = pod != null && pod.getNamespace().equals(target.getNamespace()) && pod.getName().equals(target.getName());
        return isSame ? pod : null;
    }

    /** Returns whether a server can choose this name for a ReplicaSet. No other name may become a file, a process or a host. */
    private static boolean isNameOf(ReplicaSet owner, String name) {
        String prefix = name.substring(0, Math.max(name.length() - 5, 0));
        boolean isOurs = prefix.equals(start(owner.getName())) || prefix.equals(start(owner.getName() + "-"));
        return isOurs && name.substring(prefix.length()).matches("[bcdfghjklmnpqrstvwxz2456789]{5}");
    }

    private static String start(String name) {
        return name.substring(0, Math.min(name.length(), 58));
    }
}
