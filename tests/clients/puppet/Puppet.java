import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import dev.decree.agent.Agent;
import dev.decree.agent.Cluster;
import dev.decree.agent.Failure;
import dev.decree.agent.Limits;
import dev.decree.v1.FailureClass;
import dev.decree.v1.Hello;
import dev.decree.v1.Mode;
import dev.decree.v1.Pod;
import dev.decree.v1.PodPhase;
import dev.decree.v1.ReadyCondition;
import dev.decree.v1.Reason;
import dev.decree.v1.ReplicaSet;
import io.grpc.Channel;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** A controller that executes the commands of a test. Each line on standard input is a command; each printed line is a response or an event. */
public final class Puppet implements Cluster {
    /** The behavior of the next creates and deletes. */
    private final Map<String, List<String>> how = new ConcurrentHashMap<>(Map.of("create", List.of("make"), "delete", List.of("remove")));

    private final Channel channel;
    private final Agent agent;
    private volatile CountDownLatch released = new CountDownLatch(1);
    private long since;

    private Puppet(String[] arguments) {
        channel = Grpc.newChannelBuilder(arguments[0], InsecureChannelCredentials.create()).build();
        Mode mode = Mode.forNumber(Integer.parseInt(arguments[4]));
        Duration timeout = Duration.ofMillis(Long.parseLong(arguments[1]));
        Limits limits = new Limits(timeout, Double.parseDouble(arguments[2]), Integer.parseInt(arguments[3]));
        agent = new Agent(Hello.newBuilder().setClusterUid("puppet").setMode(mode).build(), this, limits);
    }

    @Override
    public Pod create(ReplicaSet owner, String name) throws Exception {
        // After a test sees a call, it can change the behavior of the next one.
        List<String> next = how.get("create");
        CountDownLatch latch = released;
        say("create " + name);
        return switch (next.get(0)) {
            case "pod" -> Pod.parseFrom(bytes(next.get(1)));
            case "nothing" -> null;
            default -> {
                act(next.get(0), latch);
                Pod.Builder made = Pod.newBuilder().setUid(name).setNodeName("made").setPhase(PodPhase.POD_PHASE_RUNNING);
                yield made.setReady(ReadyCondition.newBuilder().setReady(true)).build();
            }
        };
    }

    @Override
    public void delete(Pod pod, Reason reason) throws Exception {
        String next = how.get("delete").get(0);
        CountDownLatch latch = released;
        say("delete " + pod.getName());
        act(next, latch);
    }

    /** Does something other than success. */
    private static void act(String next, CountDownLatch latch) throws Exception {
        switch (next) {
            case "throw" -> throw new AssertionError("boom");
            case "exit" -> throw new NoClassDefFoundError("boom");
            case "hang" -> awaitRelease(latch);
            case "throttled" -> throw new Failure(FailureClass.FAILURE_CLASS_THROTTLED, "slow down", Duration.ofMillis(1500));
            default -> {}
        }
    }

    private static void awaitRelease(CountDownLatch latch) {
        while (latch.getCount() > 0) {
            try {
                latch.await();
            } catch (InterruptedException ignored) {
                // Some calls continue after an interrupt.
            }
        }
    }

    private void obey(String word, List<String> rest) throws InvalidProtocolBufferException {
        switch (word) {
            case "create", "delete" -> how.put(word, rest);
            case "release" -> {
                released.countDown();
                released = new CountDownLatch(1);
            }
            case "run" -> new Thread(this::run).start();
            case "stop" -> agent.stop();
            case "apply-replica-set" -> agent.applyReplicaSet(ReplicaSet.parseFrom(bytes(rest.get(0))));
            case "apply-pod" -> agent.applyPod(Pod.parseFrom(bytes(rest.get(0))));
            case "remove-pod" -> agent.removePod(rest.get(0));
            case "mark" -> since = agent.mark();
            case "sync-pods" -> {
                List<Pod> pods = new ArrayList<>();
                for (String text : rest) {
                    pods.add(Pod.parseFrom(bytes(text)));
                }
                agent.syncPods(pods, since);
            }
            case "sync-replica-sets" -> {
                List<ReplicaSet> sets = new ArrayList<>();
                for (String text : rest) {
                    sets.add(ReplicaSet.parseFrom(bytes(text)));
                }
                agent.syncReplicaSets(sets, since);
            }
            case "pods" -> {
                var names = agent.pods().stream().map(pod -> pod.getName() + "@" + pod.getNodeName()).sorted().toList();
                say(("pods " + String.join(" ", names)).strip());
            }
            default -> throw new IllegalStateException(word);
        }
    }

    private void run() {
        try {
            agent.run(channel);
            say("stopped");
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    private static ByteString bytes(String text) {
        return ByteString.copyFrom(HexFormat.of().parseHex(text));
    }

    private static void say(String line) {
        System.out.println(line.split("\n", 2)[0]);
    }

    public static void main(String[] arguments) throws IOException {
        Logger logger = Logger.getLogger("dev.decree.agent");
        logger.setUseParentHandlers(false);
        logger.addHandler(new Handler() {
            @Override
            public void publish(LogRecord logged) {
                say("log " + logged.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        });
        Puppet puppet = new Puppet(arguments);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> words = List.of(line.strip().split(" "));
            try {
                puppet.obey(words.get(0), words.subList(1, words.size()));
                say("ok " + words.get(0));
            } catch (IllegalArgumentException error) {
                say("refused " + error.getMessage());
            }
        }
    }
}
