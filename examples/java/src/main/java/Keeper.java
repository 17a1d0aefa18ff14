import dev.decree.agent.Agent;
import dev.decree.agent.Cluster;
import dev.decree.agent.Failure;
import dev.decree.v1.FailureClass;
import dev.decree.v1.LabelSelector;
import dev.decree.v1.OwnerReference;
import dev.decree.v1.Pod;
import dev.decree.v1.PodPhase;
import dev.decree.v1.ReadyCondition;
import dev.decree.v1.Reason;
import dev.decree.v1.ReplicaSet;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchService;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Keeps N files in a folder. Decree decides which files to create and which to remove:
 *
 * <pre>java -cp 'target/classes:target/lib/*' Keeper --server 127.0.0.1:50051 --replicas 3 --folder /tmp/kept</pre>
 *
 * <p>Each line on standard input is a new number of replicas. When the input ends, the keeper removes all files and exits. A file that somebody removes is
 * replaced. The files outlive a killed keeper, and the next keeper finds them.
 */
public final class Keeper implements Cluster {
    private static final Map<String, String> LABELS = Map.of("kept-by", "keeper");

    private final Path folder;
    private final Agent agent;
    private volatile boolean isOver;

    private Keeper(Path folder, int replicas) {
        this.folder = folder;
        this.agent = new Agent("folder:" + folder, this);
        agent.applyReplicaSet(ReplicaSet.newBuilder()
                .setNamespace("local").setName("files").setUid(folder.toString()).setGeneration(1).setReplicas(replicas)
                .setSelector(LabelSelector.newBuilder().putAllMatchLabels(LABELS)).putAllTemplateLabels(LABELS).build());
    }

    @Override
    public Pod create(ReplicaSet owner, String name) throws Failure {
        try {
            Files.createFile(folder.resolve(name));
        } catch (IOException error) {
            throw new Failure(FailureClass.FAILURE_CLASS_UNAVAILABLE, error.toString());
        }
        System.out.println("started " + name);
        return pod(name);
    }

    @Override
    public void delete(Pod pod, Reason reason) throws Failure {
        System.out.println("stopped " + pod.getName() + " because " + reason.getDetail());
        try {
            Files.delete(folder.resolve(pod.getName()));
        } catch (IOException error) {
            throw new Failure(FailureClass.FAILURE_CLASS_NOT_FOUND, error.toString());
        }
    }

    /** Returns the pod of a file. The server never reuses a name, so the name of the file is its UID. */
    private Pod pod(String name) {
        return Pod.newBuilder()
                .setNamespace("local").setName(name).setUid(name).putAllLabels(LABELS).setNodeName("localhost")
                .setPhase(PodPhase.POD_PHASE_RUNNING).setReady(ReadyCondition.newBuilder().setReady(true))
                .setController(OwnerReference.newBuilder().setKind("ReplicaSet").setName("files").setUid(folder.toString()))
                .build();
    }

    /** Takes over the files of an earlier keeper. */
    private void find() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.filter(file -> file.getFileName().toString().startsWith("files-")).toList()) {
                System.out.println("found " + file.getFileName());
                agent.applyPod(pod(file.getFileName().toString()));
            }
        }
    }

    /** Tells the agent of files that somebody removes. */
    private void watch(WatchService watcher) throws InterruptedException {
        while (true) {
            var key = watcher.take();
            for (var event : key.pollEvents()) {
                System.out.println("ended " + event.context());
                agent.removePod(event.context().toString());
            }
            key.reset();
        }
    }

    /** Reads numbers of replicas until the input ends. */
    private void scale() throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            agent.scale(folder.toString(), Integer.parseInt(line.strip()));
        }
        isOver = true;
        agent.stop();
    }

    private interface Task {
        void run() throws Exception;
    }

    private static Thread daemon(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
        thread.setDaemon(true);
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> flags = new HashMap<>(Map.of("--server", "127.0.0.1:50051", "--replicas", "3", "--folder", "/tmp/decree-keeper"));
        for (int at = 0; at + 1 < arguments.length; at += 2) {
            flags.put(arguments[at], arguments[at + 1]);
        }
        Path folder = Files.createDirectories(Path.of(flags.get("--folder")));
        Keeper keeper = new Keeper(folder, Integer.parseInt(flags.get("--replicas")));
        // The watch begins before the list, so that no change is missed.
        WatchService watcher = folder.getFileSystem().newWatchService();
        folder.register(watcher, StandardWatchEventKinds.ENTRY_DELETE);
        keeper.find();
        daemon(() -> keeper.watch(watcher)).start();
        daemon(keeper::scale).start();
        var channel = Grpc.newChannelBuilder(flags.get("--server"), InsecureChannelCredentials.create()).build();
        // SIGTERM shuts down in order, and leaves the files to the next keeper.
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(daemon(() -> { keeper.agent.stop(); main.join(); }));
        keeper.agent.run(channel);
        channel.shutdownNow();
        for (Pod pod : keeper.isOver ? keeper.agent.pods() : List.<Pod>of()) {
            keeper.delete(pod, Reason.newBuilder().setDetail("the input has ended").build());
        }
    }
}
