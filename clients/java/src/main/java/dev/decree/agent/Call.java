package dev.decree.agent;

import static dev.decree.agent.Answers.constant;
import static dev.decree.agent.Answers.failed;

import dev.decree.v1.Deleted;
import dev.decree.v1.Done;
import dev.decree.v1.Event;
import dev.decree.v1.FailureClass;
import dev.decree.v1.Kind;
import dev.decree.v1.ObjectRef;
import dev.decree.v1.Outcome;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.logging.Level;

/** Makes one call of the cluster. */
final class Call {
    private Call() {}

    /** What is called. */
    interface Task<T> {
        T run() throws Exception;
    }

    /**
     * Makes a call, and returns what is to be done with its end: after {@code cleared}, the change of a success, or the failure. Whatever the call does, there is one
     * outcome. One that takes too long is answered with TIMEOUT, and what it does is told when it returns after all.
     */
    static <T> Supplier<Outcome.Builder> answered(
            Agent agent, String what, ObjectRef target, Task<T> call, Function<T, Outcome.Builder> success, Runnable cleared) {
        CompletableFuture<Ended<T>> ending = new CompletableFuture<>();
        Thread thread = new Thread(() -> ending.complete(ended(call)), "decree-" + what);
        thread.setDaemon(true);
        Duration timeout = agent.limits.operationTimeout();
        try {
            thread.start();
            Ended<T> ended = ending.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
            if (ended.error() != null && !(ended.error() instanceof Failure)) {
                Agent.LOGGER.log(Level.WARNING, describe(what, target, ended.error().toString()), ended.error());
            }
            return () -> change(ended, success, cleared);
        } catch (OutOfMemoryError none) { // There can be no more threads.
            return () -> change(new Ended<>(null, new Failure(FailureClass.FAILURE_CLASS_UNAVAILABLE, none.toString())), success, cleared);
        } catch (TimeoutException | InterruptedException | ExecutionException late) {
            String text = "it has not returned within " + timeout.toMillis() / 1e3 + " s";
            String rounded = text.replace(".0 s", " s");
            Agent.LOGGER.warning(() -> describe(what, target, rounded));
            thread.interrupt();
            ending.thenAccept(ended -> late(agent, () -> change(ended, success, cleared), target));
            return constant(failed(FailureClass.FAILURE_CLASS_TIMEOUT, rounded));
        }
    }

    /** How a call has ended: with a result, or with what was thrown. */
    private record Ended<T>(T result, Throwable error) {}

    private static <T> Ended<T> ended(Task<T> call) {
        try {
            return new Ended<>(call.run(), null);
        } catch (Throwable error) { // Also an Error: the operation has an outcome, whatever it is.
            return new Ended<>(null, error);
        }
    }

    /** Changes the view by what a call has done, and returns its outcome: if it threw something else than a Failure, its effect is unknown. */
    private static <T> Outcome.Builder change(Ended<T> ended, Function<T, Outcome.Builder> success, Runnable cleared) {
        cleared.run();
        if (ended.error() == null) {
            return success.apply(ended.result());
        }
        boolean isSaid = ended.error() instanceof Failure;
        return isSaid ? failed((Failure) ended.error()) : failed(FailureClass.FAILURE_CLASS_TIMEOUT, ended.error().toString());
    }

    private static String describe(String what, ObjectRef target, String why) {
        return what + " of " + target.getNamespace() + "/" + target.getName() + " failed: " + why;
    }

    /** Tells what a call has changed whose operation was answered before. */
    private static void late(Agent agent, Supplier<Outcome.Builder> change, ObjectRef target) {
        synchronized (agent) {
            Done done = change.get().getDone();
            switch (done.getObjectCase()) {
                case POD -> agent.change(Event.newBuilder().setPodApplied(done.getPod()));
                case REPLICA_SET -> agent.change(Event.newBuilder().setReplicaSetApplied(done.getReplicaSet()));
                case GONE -> {
                    Deleted.Builder deleted = Deleted.newBuilder().setKind(Kind.KIND_POD).setObject(target);
                    agent.change(Event.newBuilder().setDeleted(deleted.setResourceVersion(done.getResourceVersion())));
                }
                default -> {} // It has failed, and changed nothing.
            }
            agent.dropRemoved();
        }
    }
}
