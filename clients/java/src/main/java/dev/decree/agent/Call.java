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

    interface Task<T> {
        T run() throws Exception;
    }

    /**
     * Makes a call, and returns how to handle its end: the change of a success after {@code cleared}, or the failure. Every call has exactly one
     * outcome. If the call takes too long, the outcome is TIMEOUT, and its effect is reported when it returns.
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
        } catch (OutOfMemoryError none) { // The process cannot start more threads.
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

    /** The end of a call: its result, or the exception. */
    private record Ended<T>(T result, Throwable error) {}

    private static <T> Ended<T> ended(Task<T> call) {
        try {
            return new Ended<>(call.run(), null);
        } catch (Throwable error) { // Also an Error: every operation needs an outcome.
            return new Ended<>(null, error);
        }
    }

    /** Applies the effect of a call to the view, and returns its outcome. After an exception other than Failure, the effect is unknown. */
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

    /** Reports the changes of a call whose outcome was already sent. */
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
                default -> {} // The call failed and changed nothing.
            }
            agent.dropRemoved();
        }
    }
}
