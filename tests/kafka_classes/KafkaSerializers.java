import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;

/**
 * Serializes with Kafka's own serializers. Each line of the file given as argument is a serializer's name, its encoding
 * or inner serializer or "-", and a value, separated by tabs; the answer is the bytes in hex, "null", or "error".
 */
public class KafkaSerializers {
    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] words = line.split("\t", -1);
            byte[] written;
            try {
                written = write(words[0], words[1], words[2]);
            } catch (Exception error) {
                System.out.println("error");
                continue;
            }
            System.out.println(written == null ? "null" : "=" + HexFormat.of().formatHex(written));
        }
    }

    private static byte[] write(String name, String option, String text) throws Exception {
        if (name.equals("ListSerializer")) {
            List<Object> items = new ArrayList<>();
            if (!text.isEmpty())
                for (String item : text.split(","))
                    items.add(value(option, item));
            return new ListSerializer<Object>(serializer(option, "-")).serialize("t", items);
        }
        return serializer(name, option).serialize("t", value(name, text));
    }

    @SuppressWarnings("unchecked")
    private static Serializer<Object> serializer(String name, String encoding) throws Exception {
        Class<?> found = Class.forName("org.apache.kafka.common.serialization." + name);
        Serializer<Object> made = (Serializer<Object>) found.getDeclaredConstructor().newInstance();
        if (!encoding.equals("-"))
            made.configure(Map.of("serializer.encoding", encoding), false);
        return made;
    }

    private static Object value(String name, String text) {
        if (text.equals("null"))
            return null;
        return switch (name) {
            case "StringSerializer" -> unescaped(text);
            case "ShortSerializer" -> Short.valueOf(text);
            case "IntegerSerializer" -> Integer.valueOf(text);
            case "LongSerializer" -> Long.valueOf(text);
            case "FloatSerializer" -> (float) Double.parseDouble(text);
            case "DoubleSerializer" -> Double.valueOf(text);
            case "BooleanSerializer" -> Boolean.valueOf(text);
            case "UUIDSerializer" -> UUID.fromString(text);
            case "ByteArraySerializer" -> HexFormat.of().parseHex(text);
            case "BytesSerializer" -> Bytes.wrap(HexFormat.of().parseHex(text));
            case "ByteBufferSerializer" -> ByteBuffer.wrap(HexFormat.of().parseHex(text));
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static String unescaped(String hexOfUtf8) {
        return new String(HexFormat.of().parseHex(hexOfUtf8), java.nio.charset.StandardCharsets.UTF_8);
    }
}
