import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends a record to the bootstrap servers given as argument, tells its client instance id, and pushes for a while. */
public class PushingProducer {
    public static void main(String[] args) throws Exception {
        Map<String, Object> configs = Map.of("bootstrap.servers", args[0], "client.id", "java", "client.rack", "r1");
        StringSerializer serializer = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(configs, serializer, serializer)) {
            producer.send(new ProducerRecord<>("t", "value")).get();
            System.out.println("id " + producer.clientInstanceId(Duration.ofSeconds(30)));
            Thread.sleep(Long.parseLong(args[1]));
        }
    }
}
