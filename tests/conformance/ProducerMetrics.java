import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends one record to the bootstrap servers given as argument, then prints every metric: value, group, name, tags. */
public class ProducerMetrics {
    public static void main(String[] args) throws Exception {
        Map<String, Object> configs = Map.of("bootstrap.servers", args[0], "client.id", "me");
        StringSerializer serializer = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(configs, serializer, serializer)) {
            producer.send(new ProducerRecord<>("t", "value")).get();
            producer.metrics().forEach((name, metric) -> {
                String value = String.valueOf(metric.metricValue());
                StringBuilder line = new StringBuilder("metric " + value + " " + name.group() + " " + name.name());
                name.tags().forEach((tag, of) -> line.append(" ").append(tag).append("=").append(of));
                System.out.println(line);
            });
        }
    }
}
