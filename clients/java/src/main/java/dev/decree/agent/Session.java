package dev.decree.agent;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import dev.decree.v1.DecisionServiceGrpc;
import dev.decree.v1.Heartbeat;
import dev.decree.v1.Kind;
import dev.decree.v1.Pod;
import dev.decree.v1.ReconcileRequest;
import dev.decree.v1.ReconcileResponse;
import dev.decree.v1.ReplicaSet;
import dev.decree.v1.SnapshotBegin;
import dev.decree.v1.SnapshotEnd;
import dev.decree.v1.SnapshotObjects;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** One session: ordered frames, lists, heartbeats, and its end. The Agent's monitor guards it, so frames leave in the order of their versions. */
final class Session implements ClientResponseObserver<ReconcileRequest, ReconcileResponse> {
    /** The maximum size of the part of a list in one frame, so that lists do not delay outcomes. */
    private static final int LIST_BYTES = 256 << 10;
    /** The maximum number of frames that wait for a server that reads none. */
    private static final int FRAMES_MAX = 100_000;

    private static final Duration STOP = Duration.ofSeconds(30);
    /** How long a superseded agent stays away. Without this delay, two agents would end each other's sessions forever. */
    private static final Duration SUPERSEDED = Duration.ofMinutes(1);

    String id = "";
    boolean draining;
    final ExecutorService calls = Executors.newCachedThreadPool();
    private final Agent agent;
    private final ArrayDeque<ReconcileRequest.Builder> frames = new ArrayDeque<>();
    private final ScheduledExecutorService timers = Executors.newSingleThreadScheduledExecutor();
    private ClientCallStreamObserver<ReconcileRequest> stream;
    private ScheduledFuture<?> silent;
    private ScheduledFuture<?> quiet;
    /** Reached when no further operation may start. */
    final CountDownLatch stopped = new CountDownLatch(1);

    private Duration interval = Duration.ofSeconds(5);
    private Duration after = Duration.ZERO;
    private Throwable why;
    private boolean over;
    private boolean closed;
    private long sent;
    private long received;
    private int inFlight;

    Session(Agent agent) {
        this.agent = agent;
    }

    /** Runs the session to its end, waits for its calls, and returns the reason for the end. */
    Throwable run(DecisionServiceGrpc.DecisionServiceStub stub) throws InterruptedException {
        synchronized (agent) {
            if (agent.isStopping()) {
                return null;
            }
            open();
        }
        stub.reconcile(this);
        synchronized (agent) {
            expectFrame();
            expectQuiet();
            flush();
            while (!over) {
                agent.wait();
            }
            agent.session = null;
            stopped.countDown();
        }
        timers.shutdownNow();
        // The lists of the next session contain the writes of these calls.
        calls.shutdown();
        calls.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
        return why;
    }

    Duration after() {
        return after;
    }

    /** Sends Hello and lists both kinds. After it, every change follows in order. */
    private void open() {
        agent.session = this;
        send(ReconcileRequest.newBuilder().setHello(agent.hello));
        list(Kind.KIND_REPLICA_SET);
        list(Kind.KIND_POD);
    }

    private void list(Kind kind) {
        send(ReconcileRequest.newBuilder().setSnapshotBegin(SnapshotBegin.newBuilder().setKind(kind)));
        SnapshotObjects.Builder part = SnapshotObjects.newBuilder();
        int[] bytes = {0};
        int count;
        if (kind == Kind.KIND_POD) {
            for (Pod pod : agent.pods.values()) {
                part = withRoom(part, bytes, pod.getSerializedSize()).addPods(pod);
            }
            count = agent.pods.size();
        } else {
            for (ReplicaSet one : agent.replicaSets.values()) {
                part = withRoom(part, bytes, one.getSerializedSize()).addReplicaSets(one);
            }
            count = agent.replicaSets.size();
        }
        sendObjects(part);
        SnapshotEnd.Builder end = SnapshotEnd.newBuilder();
        end.setKind(kind).setResourceVersion(agent.nextVersion()).setCount(count);
        send(ReconcileRequest.newBuilder().setSnapshotEnd(end));
    }

    private SnapshotObjects.Builder withRoom(SnapshotObjects.Builder part, int[] bytes, int size) {
        bytes[0] += size;
        if (bytes[0] <= LIST_BYTES) {
            return part;
        }
        sendObjects(part);
        bytes[0] = size;
        return SnapshotObjects.newBuilder();
    }

    private void sendObjects(SnapshotObjects.Builder part) {
        if (part.getPodsCount() + part.getReplicaSetsCount() > 0) {
            send(ReconcileRequest.newBuilder().setSnapshotObjects(part));
        }
    }

    void send(ReconcileRequest.Builder frame) {
        if (frames.size() >= FRAMES_MAX) {
            end("the server does not read its stream");
            return;
        }
        frames.add(frame);
        flush();
    }

    /** Sends as much as the stream accepts, and closes the stream after the last frame of a draining session. */
    private void flush() {
        while (!closed && stream != null && stream.isReady() && !frames.isEmpty()) {
            stream.onNext(frames.remove().setSequence(++sent).build());
            expectQuiet();
        }
        if (!closed && stream != null && draining && inFlight == 0 && frames.isEmpty()) {
            closed = true;
            stream.onCompleted();
        }
    }

    @Override
    public void beforeStart(ClientCallStreamObserver<ReconcileRequest> opened) {
        opened.setOnReadyHandler(() -> {
            synchronized (agent) {
                flush();
            }
        });
        synchronized (agent) {
            stream = opened;
        }
    }

    @Override
    public void onNext(ReconcileResponse frame) {
        synchronized (agent) {
            received++;
            if (frame.getSequence() != received) {
                end("frame " + frame.getSequence() + " came where " + received + " was due");
                return;
            }
            handle(frame);
            expectFrame();
        }
    }

    @Override
    public void onError(Throwable error) {
        ended(error);
    }

    @Override
    public void onCompleted() {
        ended(null);
    }

    private void ended(Throwable error) {
        synchronized (agent) {
            why = why == null ? error : why;
            over = true;
            closed = true;
            agent.notifyAll();
        }
    }

    private void handle(ReconcileResponse frame) {
        switch (frame.getFrameCase()) {
            case WELCOME -> {
                id = frame.getWelcome().getSessionId();
                long millis = millis(frame.getWelcome().getHeartbeatInterval());
                interval = Duration.ofMillis(Math.min(Math.max(millis, 100), 60_000));
                expectQuiet();
            }
            case BATCHES -> frame.getBatches().getBatchesList().forEach(batch -> {
                inFlight++;
                calls.execute(() -> {
                    new Work(agent, this, batch).execute();
                    synchronized (agent) {
                        inFlight--;
                        flush();
                    }
                });
            });
            case RESYNC -> list(frame.getResync().getKind());
            case DRAIN -> {
                after = Duration.ofMillis(millis(frame.getDrain().getReconnectAfter()));
                drain();
            }
            case REJECTION -> Agent.LOGGER.warning(() -> "rejected: " + frame.getRejection());
            default -> {} // A heartbeat, or a frame of a later version.
        }
    }

    /** Begins to drain: no further operation starts, and the stream is closed after the last outcome. */
    void drain() {
        if (!draining) {
            draining = true;
            stopped.countDown();
            schedule(STOP, () -> end("the session did not end in time"));
            flush();
        }
    }

    /** Ends the session unless the server sends something in time. */
    private void expectFrame() {
        cancel(silent);
        silent = schedule(interval.multipliedBy(4), () -> end("the server was silent for four heartbeat intervals"));
    }

    /** Sends a heartbeat after an interval without frames. */
    private void expectQuiet() {
        cancel(quiet);
        quiet = schedule(interval, () -> {
            Heartbeat.Builder beat = Heartbeat.newBuilder().setLastSequence(received);
            beat.setViewAge(com.google.protobuf.Duration.getDefaultInstance());
            send(ReconcileRequest.newBuilder().setHeartbeat(beat));
            expectQuiet();
        });
    }

    private ScheduledFuture<?> schedule(Duration wait, Runnable task) {
        if (timers.isShutdown()) {
            return null;
        }
        Runnable guarded = () -> {
            synchronized (agent) {
                task.run();
            }
        };
        return timers.schedule(guarded, wait.toMillis(), TimeUnit.MILLISECONDS);
    }

    private static void cancel(ScheduledFuture<?> timer) {
        if (timer != null) {
            timer.cancel(false);
        }
    }

    private void end(String reason) {
        why = why == null ? new IllegalStateException(reason) : why;
        closed = true;
        stream.cancel(reason, null);
    }

    /** Returns the delay that the end of a session asks for. */
    static Duration retryAfter(Throwable error) {
        com.google.rpc.Status status = error == null ? null : StatusProto.fromThrowable(error);
        try {
            for (com.google.protobuf.Any detail : status == null ? List.<com.google.protobuf.Any>of() : status.getDetailsList()) {
                if (detail.is(RetryInfo.class)) {
                    return Duration.ofMillis(millis(detail.unpack(RetryInfo.class).getRetryDelay()));
                }
                if (detail.is(ErrorInfo.class) && detail.unpack(ErrorInfo.class).getReason().equals("SESSION_SUPERSEDED")) {
                    return SUPERSEDED;
                }
            }
        } catch (InvalidProtocolBufferException unreadable) {
            return Duration.ZERO;
        }
        return Duration.ZERO;
    }

    private static long millis(com.google.protobuf.Duration duration) {
        return Math.multiplyExact(Math.min(duration.getSeconds(), 1_000_000), 1_000L) + duration.getNanos() / 1_000_000;
    }
}
