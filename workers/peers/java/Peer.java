import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** One end of a Java peer: the command line, the stream, the check, the result lines. The contract is docs/WORKERS.md. */
abstract class Peer {
    static final int PERIOD = 256;
    /** A longer block is sent in pieces. */
    static final int PIECE_MAX = 1 << 20;

    private static final int TRIES_BEFORE_YIELD = 1000;
    static final VarHandle WORDS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    /** What the command line asks for; the folder is private, and the same for both ends. */
    record Job(String role, long bytes, long block, long warmup, String result, String[] child, Path folder) {
        long total() {
            return warmup + bytes;
        }

        boolean isRoundTrips() {
            return role.equals("trip") || role.equals("echo");
        }

        boolean isFirst() {
            return !role.equals("recv") && !role.equals("echo");
        }

        /** Length of the longest message. */
        int messageMax() {
            return (int) Math.min(PIECE_MAX, Math.min(block, Math.max(warmup, bytes)));
        }

        /** Creates a file that shows the other end which step this end has reached. */
        void reach(String step) throws IOException {
            Files.createFile(folder.resolve(step));
        }

        void waitFor(String step) throws InterruptedException {
            while (!Files.exists(folder.resolve(step))) {
                Thread.sleep(0, 100_000);
            }
        }
    }

    final Job job;
    /** Bytes that arrived, and the XOR of their words. */
    long received;
    long folded;
    private int tries;

    Peer(Job job) {
        this.job = job;
    }

    /** Sends the bytes of the sequence from position `start` on. */
    abstract void send(int start, int length);

    /** Takes what has arrived, counts it, and adds it to the XOR or sends it back; false if nothing has arrived. */
    abstract boolean poll();

    /** Busy waiting: spins at first, then yields the CPU. */
    final void pause() {
        if (++tries < TRIES_BEFORE_YIELD) {
            Thread.onSpinWait();
        } else {
            Thread.yield();
        }
    }

    final void resetTries() {
        tries = 0;
    }

    /** The sequence. It is longer than a block by a word, so that a whole word can be read at the last byte. */
    final byte[] sequence() {
        byte[] sequence = new byte[job.messageMax() + PERIOD + Long.BYTES];
        for (int at = 0; at < sequence.length; at++) {
            sequence[at] = (byte) at;
        }
        return sequence;
    }

    /** Runs the end that sends the stream, and in round trips checks what comes back. */
    final void runFirst() throws IOException, InterruptedException {
        long ready = System.nanoTime();
        stream(0, job.warmup);
        long began = System.nanoTime();
        stream(job.warmup, job.total());
        if (job.isRoundTrips()) {
            report(ready);
        }
        job.waitFor("received");
        append("send bytes=" + job.total() + " ready_ns=" + ready + " began_ns=" + began + "\n");
    }

    private void stream(long from, long until) {
        long position = from;
        while (position < until) {
            long end = position + Math.min(job.block, until - position);
            while (position < end) {
                int length = (int) Math.min(PIECE_MAX, end - position);
                send((int) (position % PERIOD), length);
                position += length;
            }
            if (job.isRoundTrips()) {
                receive(position);
            }
        }
    }

    /** Runs the end that receives the stream and checks it, or sends everything back. */
    final void runSecond() throws IOException, InterruptedException {
        long ready = System.nanoTime();
        receive(job.warmup);
        receive(job.total());
        if (job.isRoundTrips()) {
            job.waitFor("received");
        } else {
            report(ready);
        }
    }

    private void receive(long until) {
        while (received < until) {
            if (poll()) {
                resetTries();
            } else {
                pause();
            }
        }
        resetTries();
    }

    private void report(long ready) throws IOException {
        long ended = System.nanoTime();
        long xor = folded ^ folded >>> 32;
        xor ^= xor >>> 16;
        xor ^= xor >>> 8;
        append("recv bytes=" + received + " xor=" + (xor & 0xff) + " ready_ns=" + ready + " ended_ns=" + ended + "\n");
        job.reach("received");
        if (received != job.total()) {
            fail(1, "received " + received + " bytes instead of " + job.total());
        }
    }

    /** Appends the line in one write, because both ends share the file. */
    private void append(String line) throws IOException {
        try (FileOutputStream file = new FileOutputStream(job.result, true)) {
            file.write(line.getBytes(StandardCharsets.US_ASCII));
        }
    }

    /** Starts the other end. If it fails, a thread ends this program, whose messages would never be received. */
    static Thread startChild(Job job) throws IOException {
        Process child = new ProcessBuilder(job.child).redirectInput(Redirect.from(Path.of("/dev/null").toFile()))
                .redirectOutput(Redirect.INHERIT).redirectError(Redirect.INHERIT).start();
        return start(() -> {
            int status = child.waitFor();
            if (status != 0) {
                fail(1, "the child " + job.child[0] + " ended with status " + status);
            }
        });
    }

    interface Work {
        void run() throws Exception;
    }

    static Thread start(Work work) {
        Thread thread = new Thread(() -> orFail(work));
        thread.start();
        return thread;
    }

    /** Runs the work. If it fails, the program ends with status 1 and a sentence. */
    static void orFail(Work work) {
        try {
            work.run();
        } catch (Throwable trouble) {
            fail(1, trouble.toString());
        }
    }

    /** Calls halt and not exit, because threads of a library may be running. */
    static void fail(int status, String why) {
        System.err.println("worker: " + why);
        Runtime.getRuntime().halt(status);
    }

    /** Reads ROLE BYTES BLOCK WARMUP RESULT [CHILD...]; `alone`: both ends are threads of this program. */
    static Job parse(String[] words, boolean alone) {
        String roles = alone ? "pair|trip" : "send|recv|pair|trip|echo";
        boolean startsOther = words.length > 0 && (words[0].equals("pair") || words[0].equals("trip"));
        if (words.length < 5 || !Arrays.asList(roles.split("\\|")).contains(words[0])
                || (startsOther && !alone) != words.length > 5) {
            fail(2, "expected: " + roles + " BYTES BLOCK WARMUP RESULT" + (alone ? "" : " [CHILD...], a CHILD for pair and trip"));
        }
        String folder = System.getenv().getOrDefault("TMPDIR", "/tmp");
        Job job = new Job(words[0], number("BYTES", words[1], 1), number("BLOCK", words[2], 1),
                number("WARMUP", words[3], 0), words[4], Arrays.copyOfRange(words, 5, words.length), Path.of(folder));
        if (job.total() < 0) {
            fail(2, "BYTES and WARMUP together exceed 2^63 - 1");
        }
        return job;
    }

    private static long number(String name, String text, long smallest) {
        try {
            long value = text.chars().allMatch(digit -> digit >= '0' && digit <= '9') ? Long.parseLong(text) : -1;
            if (value >= smallest) {
                return value;
            }
        } catch (NumberFormatException tooLong) {
            // Refused below.
        }
        fail(2, name + " is \"" + text + "\", not a whole number from " + smallest + " to 2^63 - 1");
        return 0;
    }
}
