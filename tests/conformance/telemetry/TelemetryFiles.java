import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/** A broker's plugin that writes each push to a file of the directory {@code telemetry.files}, as client-number-last. */
public class TelemetryFiles implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private static final AtomicInteger PUSHES = new AtomicInteger();
    private Path directory;

    @Override
    public void configure(Map<String, ?> configs) {
        directory = Path.of(configs.get("telemetry.files").toString());
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        ByteBuffer data = payload.data();
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        String name = String.format(
            "%s %05d %s %s", context.clientId(), PUSHES.incrementAndGet(), payload.clientInstanceId(), payload.isTerminating());
        try {
            Path written = Files.write(directory.resolve(".new-" + PUSHES.get() + context.clientId()), bytes);
            Files.move(written, directory.resolve(name), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
