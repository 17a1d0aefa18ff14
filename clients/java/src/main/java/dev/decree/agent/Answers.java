package dev.decree.agent;

import dev.decree.v1.Done;
import dev.decree.v1.Failed;
import dev.decree.v1.FailureClass;
import dev.decree.v1.NotStarted;
import dev.decree.v1.NotStartedCause;
import dev.decree.v1.Outcome;
import dev.decree.v1.OwnerReference;
import dev.decree.v1.Pod;
import dev.decree.v1.ReplicaSet;
import java.time.Duration;
import java.util.function.Supplier;

/** Outcomes of operations, without batch and number. */
final class Answers {
    private Answers() {}

    static Supplier<Outcome.Builder> constant(Outcome.Builder outcome) {
        return () -> outcome;
    }

    static OwnerReference controllerOf(ReplicaSet owner) {
        OwnerReference.Builder controller = OwnerReference.newBuilder().setApiVersion("apps/v1").setKind("ReplicaSet");
        return controller.setName(owner.getName()).setUid(owner.getUid()).build();
    }

    static Outcome.Builder donePod(Pod pod, boolean alreadyExisted) {
        Done.Builder done = Done.newBuilder().setUid(pod.getUid()).setResourceVersion(pod.getResourceVersion());
        return done(done.setPod(pod).setAlreadyExisted(alreadyExisted));
    }

    static Outcome.Builder done(Done.Builder done) {
        return Outcome.newBuilder().setDone(done);
    }

    static Outcome.Builder failed(FailureClass kind, String message) {
        return Outcome.newBuilder().setFailed(Failed.newBuilder().setClass_(kind).setMessage(message == null ? "" : message));
    }

    static Outcome.Builder failed(Failure failure) {
        Outcome.Builder outcome = failed(failure.kind(), failure.getMessage());
        Duration wait = failure.retryAfter();
        if (!wait.isZero() && !wait.isNegative()) {
            outcome.getFailedBuilder().getRetryAfterBuilder().setSeconds(wait.getSeconds()).setNanos(wait.getNano());
        }
        return outcome;
    }

    static Outcome.Builder guarded(String message) {
        return notStarted(NotStartedCause.NOT_STARTED_CAUSE_GUARD, message);
    }

    static Outcome.Builder notStarted(NotStartedCause cause, String message) {
        return Outcome.newBuilder().setNotStarted(NotStarted.newBuilder().setCause(cause).setMessage(message));
    }
}
