import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Iterator;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/**
 * Kafka's own classes read the record batches of one file, print what they find in them, and write the same records
 * again. The arguments: the file to read; a file that has, for each of its batches, a line with the compression levels
 * to write it with ("default" or a number, separated by spaces; it may be empty); the file to print to; the file to
 * write to.
 */
public class RecordBatches {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] files) throws Exception {
        ByteBuffer input = ByteBuffer.wrap(Files.readAllBytes(Path.of(files[0])));
        Iterator<String> levels = Files.readAllLines(Path.of(files[1])).iterator();
        try (PrintWriter found = new PrintWriter(files[2], StandardCharsets.UTF_8);
                var written = Files.newOutputStream(Path.of(files[3]))) {
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(input).batches()) {
                batch.ensureValid();
                print(batch, found);
                for (String level : levels.next().split(" ", 0)) {
                    if (level.isEmpty())
                        continue;
                    ByteBuffer copy = write(batch, compression(batch.compressionType(), level));
                    written.write(copy.array(), copy.arrayOffset(), copy.limit());
                }
            }
        }
    }

    private static void print(MutableRecordBatch batch, PrintWriter out) {
        out.printf("batch %d..%d size %d epoch %d magic %d %s %s max %d producer %d %d sequences %d..%d count %d%s%s%n",
            batch.baseOffset(), batch.lastOffset(), batch.sizeInBytes(), batch.partitionLeaderEpoch(), batch.magic(),
            batch.compressionType().name, batch.timestampType().name, batch.maxTimestamp(), batch.producerId(),
            batch.producerEpoch(), batch.baseSequence(), batch.lastSequence(), batch.countOrNull(),
            batch.isTransactional() ? " transactional" : "", batch.isControlBatch() ? " control" : "");
        try (CloseableIterator<Record> records = batch.streamingIterator(BufferSupplier.create())) {
            while (records.hasNext()) {
                Record record = records.next();
                out.printf("record %d %d %s %s", record.offset(), record.timestamp(), hex(record.key()),
                    hex(record.value()));
                for (Header header : record.headers()) {
                    byte[] value = header.value();
                    out.printf(" %s=%s", hex(ByteBuffer.wrap(header.key().getBytes(StandardCharsets.UTF_8))),
                        hex(value == null ? null : ByteBuffer.wrap(value)));
                }
                out.println();
            }
        }
    }

    private static String hex(ByteBuffer bytes) {
        if (bytes == null)
            return "null";
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return "x" + HEX.formatHex(copy);
    }

    private static Compression compression(CompressionType type, String level) {
        if (level.equals("default"))
            return Compression.of(type).build();
        int number = Integer.parseInt(level);
        return switch (type) {
            case GZIP -> Compression.gzip().level(number).build();
            case LZ4 -> Compression.lz4().level(number).build();
            case ZSTD -> Compression.zstd().level(number).build();
            default -> throw new IllegalArgumentException(type + " has no levels");
        };
    }

    private static ByteBuffer write(RecordBatch batch, Compression compression) {
        boolean logAppendTime = batch.timestampType() == TimestampType.LOG_APPEND_TIME;
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(batch.sizeInBytes() + 1024),
            RecordBatch.CURRENT_MAGIC_VALUE, compression, batch.timestampType(), batch.baseOffset(),
            logAppendTime ? batch.maxTimestamp() : RecordBatch.NO_TIMESTAMP, batch.producerId(), batch.producerEpoch(),
            batch.baseSequence(), batch.isTransactional(), false, batch.partitionLeaderEpoch());
        for (Record record : batch)
            builder.append(record);
        MemoryRecords records = builder.build();
        return records.buffer();
    }
}
