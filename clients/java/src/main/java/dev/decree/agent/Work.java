package dev.decree.agent;

import dev.decree.v1.Batch;
import dev.decree.v1.Create;
import dev.decree.v1.Done;
import dev.decree.v1.Failed;
import dev.decree.v1.FailureClass;
import dev.decree.v1.NotStarted;
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
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
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

    /** One operation. It makes its call, and returns what changes the view and makes the outcome, which runs with the Agent's monitor. */
    private interface Operation extends Supplier<Supplier<Outcome.Builder>> {}

    /** A call of the cluster. */
    private interface Call<T> {
        T run() throws Exception;
    }

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
            default -> {} // An action of a later version has no operations that could be answered.
        }
    }

    private static <T> List<Operation> operations(List<T> targets, Function<T, Supplier<Outcome.Builder>> method) {
        List<Operation> operations = new ArrayList<>();
        targets.forEach(target -> operations.add(() -> method.apply(target)));
        return operations;
    }

    /** Makes pods in rounds that double, and stops after the first round with a failure. */
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

    /** Executes operations at once, and returns whether one failed. */
    private boolean round(int begin, List<Operation> operations) {
        List<CompletableFuture<Boolean>> all = new ArrayList<>();
        for (int at = 0; at < operations.size(); at++) {
            Operation operation = operations.get(at);
            int number = begin + at;
            all.add(CompletableFuture.supplyAsync(() -> finish(number, operation.get()), session.calls));
        }
        return all.stream().map(CompletableFuture::join).reduce(false, Boolean::logicalOr);
    }

    /** Changes the view and sends the outcome, unless its session is over. Returns whether the operation failed. */
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

    /** Returns why no operation of the batch may start, or null. */
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
        ReplicaSet owner;
        synchronized (agent) {
            Outcome.Builder refused = refused();
            refused = refused == null ? refusedCreate(name) : refused;
            if (refused != null) {
                return constant(refused);
            }
            owner = owner();
            agent.creating.add(owner.getUid());
        }
        return attempt(() -> agent.cluster.create(owner, name), pod -> created(owner, name, pod), () -> agent.creating.remove(owner.getUid()));
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
        long creating = agent.creating.stream().filter(owner.getUid()::equals).count();
        return agent.active(owner.getUid()) + creating < wanted() ? null : guarded("surplus: there are as many pods as wanted");
    }

    private Outcome.Builder created(ReplicaSet owner, String name, Pod pod) {
        Pod.Builder made = pod.toBuilder().setNamespace(owner.getNamespace()).setName(name).setController(controllerOf(owner));
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
        return attempt(
                () -> {
                    agent.cluster.delete(pod, victim.getReason());
                    return pod;
                },
                gone -> {
                    agent.pods.remove(gone.getUid());
                    return done(Done.newBuilder().setUid(gone.getUid()).setResourceVersion(agent.nextVersion()).setGone(true));
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
        return agent.active(owner().getUid()) > wanted() ? null : guarded("shortage: no more pods are active than wanted");
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
        return attempt(
                () -> {
                    agent.cluster.setController(pod, controller);
                    return pod.getUid();
                },
                uid -> claimed(uid, controller),
                () -> true);
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
        return attempt(
                () -> {
                    agent.cluster.writeStatus(owner, status);
                    return owner.getUid();
                },
                uid -> written(uid, status),
                () -> true);
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

    /** Makes a call, and returns what is to be done with its end: after `cleared`, the change of a success, or the failure. */
    private static <T> Supplier<Outcome.Builder> attempt(Call<T> call, Function<T, Outcome.Builder> success, BooleanSupplier cleared) {
        Supplier<Outcome.Builder> change;
        try {
            T result = call.run();
            change = () -> success.apply(result);
        } catch (Failure failure) {
            change = () -> failed(failure.kind(), failure.getMessage());
        } catch (Exception unknown) {
            change = () -> failed(FailureClass.FAILURE_CLASS_TIMEOUT, unknown.toString());
        }
        Supplier<Outcome.Builder> then = change;
        return () -> {
            cleared.getAsBoolean();
            return then.get();
        };
    }

    private static Supplier<Outcome.Builder> constant(Outcome.Builder outcome) {
        return () -> outcome;
    }

    /** Returns whether a name is one that a server makes for a ReplicaSet: nothing else may become a file, a process or a host. */
    private static boolean isNameOf(ReplicaSet owner, String name) {
        String prefix = name.substring(0, Math.max(name.length() - 5, 0));
        boolean isOurs = prefix.equals(start(owner.getName())) || prefix.equals(start(owner.getName() + "-"));
        return isOurs && name.substring(prefix.length()).matches("[bcdfghjklmnpqrstvwxz2456789]{5}");
    }

    private static String start(String name) {
        return name.substring(0, Math.min(name.length(), 58));
    }

    private static OwnerReference controllerOf(ReplicaSet owner) {
        OwnerReference.Builder controller = OwnerReference.newBuilder().setApiVersion("apps/v1").setKind("ReplicaSet");
        return controller.setName(owner.getName()).setUid(owner.getUid()).build();
    }

    private static Outcome.Builder donePod(Pod pod, boolean alreadyExisted) {
        Done.Builder done = Done.newBuilder().setUid(pod.getUid()).setResourceVersion(pod.getResourceVersion());
        return done(done.setPod(pod).setAlreadyExisted(alreadyExisted));
    }

    private static Outcome.Builder done(Done.Builder done) {
        return Outcome.newBuilder().setDone(done);
    }

    private static Outcome.Builder failed(FailureClass kind, String message) {
        return Outcome.newBuilder().setFailed(Failed.newBuilder().setClass_(kind).setMessage(message == null ? "" : message));
    }

    private static Outcome.Builder guarded(String message) {
        return notStarted(NotStartedCause.NOT_STARTED_CAUSE_GUARD, message);
    }

    private static Outcome.Builder notStarted(NotStartedCause cause, String message) {
        return Outcome.newBuilder().setNotStarted(NotStarted.newBuilder().setCause(cause).setMessage(message));
    }
}
