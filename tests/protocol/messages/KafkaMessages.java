import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Kafka's generated classes read messages and write them again. Each line of the file that is the first argument is
 * "RequestHeader 2 00ff…": a message, its version, its bytes. Each line of the file that is the second argument is what
 * Kafka makes of it: the bytes that it writes for the message it read, and that message as JSON (of records only the
 * size).
 */
public class KafkaMessages {
    public static void main(String[] files) throws Exception {
        HexFormat hex = HexFormat.of();
        try (PrintWriter out = new PrintWriter(files[1], StandardCharsets.UTF_8)) {
            for (String line : Files.readAllLines(Path.of(files[0]))) {
                String[] words = line.split(" ", 3);
                short version = Short.parseShort(words[1]);
                Class<?> data = Class.forName("org.apache.kafka.common.message." + words[0] + "Data");
                Class<?> converter = Class.forName(data.getName() + "JsonConverter");
                Message message = (Message) data.getConstructor().newInstance();
                ByteBuffer bytes = ByteBuffer.wrap(hex.parseHex(words[2]));
                message.read(new ByteBufferAccessor(bytes), version);
                if (bytes.hasRemaining())
                    throw new IllegalStateException(line + ": " + bytes.remaining() + " bytes left");
                ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
                byte[] copy = new byte[written.remaining()];
                written.get(copy);
                Object json = converter.getMethod("write", data, short.class, boolean.class)
                    .invoke(null, message, version, false);
                out.println(hex.formatHex(copy) + " " + json);
            }
        }
    }
}
