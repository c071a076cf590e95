import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Callers that share one producer; each sends some records, waits until all of them are acknowledged, and begins anew.
 * The producer sends what waits in one request, so callers share requests, and with them the broker's syncs.
 *
 * <p>Arguments: TOPIC OUT CALLERS ROWS WARMUP SECONDS ENTRY_BYTES PROPERTY=VALUE... Writes the microseconds of every
 * round that ended within the window to OUT, as big-endian 64-bit integers.
 */
public final class KafkaCallers {
    private final KafkaProducer<byte[], byte[]> producer;
    private final String topic;
    private final int rows;
    private final int entryBytes;
    private final long begin;
    private final long end;

    private KafkaCallers(String[] args, Properties properties) {
        topic = args[0];
        rows = Integer.parseInt(args[3]);
        entryBytes = Integer.parseInt(args[6]);
        producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        begin = System.nanoTime() + nanos(args[4]);
        end = begin + nanos(args[5]);
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        for (String property : Arrays.asList(args).subList(7, args.length)) {
            String[] sides = property.split("=", 2);
            properties.put(sides[0], sides[1]);
        }
        KafkaCallers load = new KafkaCallers(args, properties);
        int callers = Integer.parseInt(args[2]);
        ExecutorService threads = Executors.newFixedThreadPool(callers);
        List<Callable<long[]>> tasks = new ArrayList<>();
        for (int caller = 0; caller < callers; caller++) {
            tasks.add(load::caller);
        }
        Path out = Path.of(args[1]);
        try (load.producer;
                DataOutputStream file = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(out)))) {
            for (Future<long[]> done : threads.invokeAll(tasks)) {
                for (long taken : done.get()) {
                    file.writeLong(taken);
                }
            }
        } finally {
            threads.shutdownNow();
        }
    }

    /** One caller, until the window is over. */
    private long[] caller() throws Exception {
        byte[] payload = new byte[entryBytes];
        ThreadLocalRandom.current().nextBytes(payload);
        List<Future<RecordMetadata>> sent = new ArrayList<>(rows);
        long[] taken = new long[1024];
        int count = 0;
        while (true) {
            long start = System.nanoTime();
            for (int row = 0; row < rows; row++) {
                sent.add(producer.send(new ProducerRecord<>(topic, payload)));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
            sent.clear();
            long now = System.nanoTime();
            if (now >= end) {
                return Arrays.copyOf(taken, count);
            }
            if (now >= begin) {
                if (count == taken.length) {
                    taken = Arrays.copyOf(taken, 2 * count);
                }
                taken[count++] = (now - start) / 1000;
            }
        }
    }

    private static long nanos(String seconds) {
        return (long) (Double.parseDouble(seconds) * 1e9);
    }
}
