import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Utils;

/**
 * Prints what Kafka's own classes say: every error with its number and the chain of its exception's classes; every
 * config of the producer with its type, default and range; which of the values in the file given as argument each
 * config takes; and the murmur2 hashes of the same values.
 */
public class KafkaClasses {
    public static void main(String[] args) throws Exception {
        List<String> values = Files.readAllLines(Path.of(args[0]));
        for (Errors error : Errors.values()) {
            StringBuilder chain = new StringBuilder();
            if (error.exception() != null)
                for (Class<?> c = error.exception().getClass(); c != RuntimeException.class; c = c.getSuperclass())
                    chain.append(' ').append(c.getSimpleName());
            System.out.println("error " + error.code() + " " + error.name() + chain);
        }
        for (ConfigDef.ConfigKey key : ProducerConfig.configDef().configKeys().values()) {
            String standard = key.hasDefault() ? String.valueOf(key.defaultValue) : "required";
            System.out.println("config " + key.name + " " + key.type + " " + standard);
            System.out.println("range " + key.name + " " + key.validator);
            for (int number = 0; number < values.size(); number++)
                if (takes(key, values.get(number)))
                    System.out.println("takes " + key.name + " " + number);
        }
        for (int number = 0; number < values.size(); number++)
            System.out.println("hash " + number + " " + Utils.murmur2(values.get(number).getBytes("UTF-8")));
    }

    private static boolean takes(ConfigDef.ConfigKey key, String value) {
        try {
            Object parsed = ConfigDef.parseType(key.name, value, key.type);
            if (key.validator != null)
                key.validator.ensureValid(key.name, parsed);
            return true;
        } catch (ConfigException refused) {
            return false;
        }
    }
}
