import com.google.protobuf.util.JsonFormat;
import dev.decree.v1.DecideRequest;
import dev.decree.v1.DecisionServiceGrpc;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.nio.charset.StandardCharsets;

/** Asks the server which pods of a snapshot it would delete, and why. The snapshot is JSON on standard input, as in docs/examples/decide.json. */
public final class Decide {
    private Decide() {}

    public static void main(String[] arguments) throws Exception {
        DecideRequest.Builder request = DecideRequest.newBuilder();
        JsonFormat.parser().merge(new String(System.in.readAllBytes(), StandardCharsets.UTF_8), request);
        ManagedChannel channel = Grpc.newChannelBuilder(arguments[0], InsecureChannelCredentials.create()).build();
        var answer = DecisionServiceGrpc.newBlockingStub(channel).decide(request.build());
        answer.getDecision().getDeletesList().forEach(one -> System.out.println(one.getPod().getName() + " " + one.getReason().getDetail()));
        channel.shutdownNow();
    }
}
