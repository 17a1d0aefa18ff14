import dev.decree.v1.*;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.StatusRuntimeException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.TimeUnit;

/**
 * Keeps N files in a folder. Once a second it lists the files and asks Decree which to create and which to remove:
 *
 * <pre>java -cp 'target/classes:target/lib/*' Keeper --server 127.0.0.1:50051 --replicas 3 --folder /tmp/kept</pre>
 *
 * <p>Each line on standard input is a new number of replicas. When the input ends, the keeper removes all files and exits. It remembers nothing: for the
 * same list, the server returns the same names, and no name is created twice.
 */
public final class Keeper {
    private static final Map<String, String> LABELS = Map.of("kept-by", "keeper");
    /** The most files that a turn creates, which bounds the harm of a mistyped number. */
    private static final int CREATES_MAX = 20;

    private static volatile int replicas;
    private static volatile boolean isOver;

    private static List<Pod> list(Path folder) throws IOException {
        try (var files = Files.list(folder)) {
            var names = files.map(file -> file.getFileName().toString()).filter(name -> name.startsWith("files-"));
            // A file has no other identity than its name.
            return names.map(name -> Pod.newBuilder()
                    .setNamespace("local").setName(name).setUid(name).putAllLabels(LABELS).setNodeName("localhost")
                    .setPhase(PodPhase.POD_PHASE_RUNNING).setReady(ReadyCondition.newBuilder().setReady(true))
                    .setController(OwnerReference.newBuilder().setKind("ReplicaSet").setName("files").setUid(folder.toString()))
                    .build()).toList();
        }
    }

    private static void turn(Path folder, List<Pod> pods, DecisionServiceGrpc.DecisionServiceBlockingStub server) throws IOException {
        ReplicaSet set = ReplicaSet.newBuilder()
                .setNamespace("local").setName("files").setUid(folder.toString()).setReplicas(replicas)
                .setSelector(LabelSelector.newBuilder().putAllMatchLabels(LABELS)).putAllTemplateLabels(LABELS).build();
        DecideRequest request = DecideRequest.newBuilder().setReplicaSet(set).addAllPods(pods).build();
        Decision decision = server.withDeadlineAfter(5, TimeUnit.SECONDS).decide(request).getDecision();
        for (String name : decision.getCreatesList().stream().limit(CREATES_MAX).toList()) {
            try {
                Files.createFile(folder.resolve(name));
                System.out.println("started " + name);
            } catch (FileAlreadyExistsException late) {
                // The list lags: it does not show the file yet.
            }
        }
        for (Victim victim : decision.getDeletesList()) {
            if (Files.deleteIfExists(folder.resolve(victim.getPod().getUid()))) {
                System.out.println("stopped " + victim.getPod().getName() + " because " + victim.getReason().getDetail());
            }
        }
    }

    /** Reads numbers of replicas until the input ends. */
    private static void scale() {
        new BufferedReader(new InputStreamReader(System.in)).lines().forEach(line -> {
            if (line.strip().matches("[0-9]{1,9}")) {
                replicas = Integer.parseInt(line.strip());
            } else {
                System.err.println("not a number of replicas: " + line);
            }
        });
        replicas = 0;
        isOver = true;
    }

    public static void main(String[] arguments) throws Exception {
        // The lag is the number of turns that lists are late, as those of a cloud can be; a turn begins every so many milliseconds.
        var flags = new HashMap<>(Map.of(
                "--server", "127.0.0.1:50051", "--replicas", "3", "--folder", "/tmp/decree-keeper", "--lag", "0", "--every", "1000"));
        for (int at = 0; at + 1 < arguments.length; at += 2) {
            flags.put(arguments[at], arguments[at + 1]);
        }
        Path folder = Files.createDirectories(Path.of(flags.get("--folder")));
        replicas = Integer.parseInt(flags.get("--replicas"));
        Thread input = new Thread(Keeper::scale);
        input.setDaemon(true);
        input.start();
        var channel = Grpc.newChannelBuilder(flags.get("--server"), InsecureChannelCredentials.create()).build();
        var lists = new ArrayDeque<List<Pod>>();
        for (boolean isEmpty = false; !isEmpty; Thread.sleep(Long.parseLong(flags.get("--every")))) {
            // What was created before the end of the input is in the list of a turn that begins after it.
            boolean isLast = isOver;
            try {
                lists.add(list(folder));
                if (lists.size() > Integer.parseInt(flags.get("--lag")) + 1) {
                    lists.remove();
                }
                turn(folder, lists.peek(), DecisionServiceGrpc.newBlockingStub(channel));
                isEmpty = isLast && lists.stream().allMatch(List::isEmpty);
            } catch (IOException | UncheckedIOException | StatusRuntimeException error) {
                System.err.println(error); // A turn that fails changes nothing for the next one.
            }
        }
        channel.shutdownNow();
    }
}
