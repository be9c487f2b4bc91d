// A worker of hosepipe in Java: `java Worker idiomatic|tuned ROLE ...`, the contract of docs/WORKERS.md.
// The idiomatic way is ProcessBuilder with its streams; the tuned way is FileChannel with direct buffers.

import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

public final class Worker {
    /** The length of the byte sequence of the stream: byte i is i mod PERIOD. */
    private static final int PERIOD = 256;
    private static final int PAGE = 4096;

    /** The longest block: an array holds no more, and the pattern is PERIOD bytes longer. */
    private static final long BLOCK_BYTES_MAX = Integer.MAX_VALUE - 8 - PERIOD - 2 * PAGE;

    /** What the command line asks for. */
    private record Job(String role, long bytes, int block, long warmup, String result, String[] child) {}

    /** The writing end: write() writes `count` bytes of the pattern from `begin` on, never fewer. */
    private interface Output {
        void write(int begin, int count) throws IOException;

        void close() throws IOException;
    }

    /** The reading end: it returns the bytes of one read, or -1 at the end, and keeps their XOR. */
    private interface Input {
        int read() throws IOException;

        int xor();
    }

    /** One of the two ways in which this language moves and folds bytes. */
    private interface Way {
        Output standardOutput(byte[] pattern);

        Output childInput(byte[] pattern, Process child) throws IOException;

        Input standardInput(int block);
    }

    /** A command line that breaks the contract. */
    private static final class Refusal extends Exception {
        Refusal(String sentence) {
            super(sentence);
        }
    }

    public static void main(String[] arguments) {
        int status = 0;
        try {
            run(arguments);
        } catch (Refusal refusal) {
            System.err.println("java worker: " + refusal.getMessage());
            status = 2;
        } catch (IOException | InterruptedException trouble) {
            System.err.println("java " + arguments[0] + " " + arguments[1] + ": " + trouble.getMessage());
            status = 1;
        }
        System.exit(status);
    }

    private static void run(String[] arguments) throws Refusal, IOException, InterruptedException {
        String name = arguments.length == 0 ? "" : arguments[0];
        Way way =
                switch (name) {
                    case "idiomatic" -> new Idiomatic();
                    case "tuned" -> new Tuned();
                    default -> throw new Refusal("the first argument is idiomatic or tuned, not " + quoted(name));
                };
        Job job = parse(Arrays.copyOfRange(arguments, 1, arguments.length));
        switch (job.role) {
            case "send" -> send(job, way.standardOutput(pattern(job)));
            case "recv" -> receive(job, way.standardInput(job.block));
            default -> pair(job, way);
        }
    }

    /** Reads ROLE BYTES BLOCK WARMUP RESULT [CHILD...]. */
    private static Job parse(String[] arguments) throws Refusal {
        if (arguments.length < 5) {
            throw new Refusal("wanted: send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]");
        }
        String role = arguments[0];
        boolean pair = role.equals("pair");
        if (!pair && !role.equals("send") && !role.equals("recv")) {
            throw new Refusal("the role is send, recv or pair, not " + quoted(role));
        }
        long bytes = number("BYTES", arguments[1], 0, Long.MAX_VALUE / 2);
        long block = number("BLOCK", arguments[2], 1, BLOCK_BYTES_MAX);
        long warmup = number("WARMUP", arguments[3], 0, Long.MAX_VALUE / 2);
        if (arguments[4].isEmpty()) {
            throw new Refusal("RESULT is a path and may not be empty");
        }
        String[] child = Arrays.copyOfRange(arguments, 5, arguments.length);
        if (pair && child.length == 0) {
            throw new Refusal("pair wants the command of its child after RESULT");
        }
        if (!pair && child.length > 0) {
            throw new Refusal(role + " takes nothing after RESULT");
        }
        return new Job(role, bytes, (int) block, warmup, arguments[4], child);
    }

    /** A decimal argument; Long.parseLong alone would take a sign and the digits of other scripts. */
    private static long number(String name, String text, long least, long most) throws Refusal {
        boolean digits = !text.isEmpty();
        for (int i = 0; i < text.length(); i++) {
            digits &= text.charAt(i) >= '0' && text.charAt(i) <= '9';
        }
        try {
            long value = digits ? Long.parseLong(text) : -1;
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException tooLong) {
            // More than 63 bits: refused below like every other number out of range.
        }
        throw new Refusal(name + " is a decimal number from " + least + " to " + most + ", not " + quoted(text));
    }

    /** An argument as a message shows it: in quotes, on one line. */
    private static String quoted(String text) {
        return '"' + text.replaceAll("\\p{Cntrl}", "?") + '"';
    }

    private static byte[] pattern(Job job) {
        byte[] pattern = new byte[job.block + PERIOD];
        for (int i = 0; i < pattern.length; i++) {
            pattern[i] = (byte) i;
        }
        return pattern;
    }

    /** Writes the whole stream, closes the output and appends the result line. */
    private static void send(Job job, Output output) throws IOException {
        long ready = System.nanoTime();
        stream(job, output, 0, job.warmup);
        long began = System.nanoTime();
        long sent = stream(job, output, job.warmup, job.warmup + job.bytes);
        output.close();
        appendResult(job, "send bytes=" + sent + " ready_ns=" + ready + " began_ns=" + began + "\n");
    }

    /** Writes the bytes from one position up to another and returns the position reached. */
    private static long stream(Job job, Output output, long from, long until) throws IOException {
        long position = from;
        while (position < until) {
            int count = (int) Math.min(job.block, until - position);
            output.write((int) (position % PERIOD), count);
            position += count;
        }
        return position;
    }

    /** Reads standard input to its end and appends the result line, also when the stream has the wrong length. */
    private static void receive(Job job, Input input) throws IOException {
        long expected = job.warmup + job.bytes;
        long received = 0;
        long ended = 0;
        boolean complete = false;
        long ready = System.nanoTime();
        for (int count = input.read(); count >= 0; count = input.read()) {
            received += count;
            if (!complete && received >= expected) {
                ended = System.nanoTime();
                complete = true;
            }
        }
        if (!complete || received != expected) {
            ended = System.nanoTime();
        }
        appendResult(job, "recv bytes=" + received + " xor=" + input.xor() + " ready_ns=" + ready
                + " ended_ns=" + ended + "\n");
        if (received != expected) {
            throw new IOException("the input has " + received + " bytes where " + expected + " were announced");
        }
    }

    /** Starts the child, streams into its standard input and waits for it even if the stream has failed. */
    private static void pair(Job job, Way way) throws IOException, InterruptedException {
        byte[] pattern = pattern(job);
        Process child = new ProcessBuilder(job.child)
                .redirectOutput(ProcessBuilder.Redirect.INHERIT)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        IOException trouble = null;
        Output output = way.childInput(pattern, child);
        try {
            send(job, output);
        } catch (IOException failure) {
            trouble = failure;
            output.close();
        }
        int status = child.waitFor();
        if (trouble != null) {
            throw trouble;
        }
        if (status != 0) {
            throw new IOException("the child " + job.child[0] + " ended with status " + status);
        }
    }

    /** Adds one line to the result file in one write, since the two ends of a pair share it. */
    private static void appendResult(Job job, String line) throws IOException {
        try (FileOutputStream file = new FileOutputStream(job.result, true)) {
            file.write(line.getBytes(StandardCharsets.US_ASCII));
        }
    }

    /** Streams of java.io and a loop over bytes. */
    private static final class Idiomatic implements Way {
        public Output standardOutput(byte[] pattern) {
            return new StreamOutput(new FileOutputStream(FileDescriptor.out), pattern);
        }

        public Output childInput(byte[] pattern, Process child) {
            return new StreamOutput(child.getOutputStream(), pattern);
        }

        public Input standardInput(int block) {
            return new StreamInput(System.in, new byte[block]);
        }
    }

    private static final class StreamOutput implements Output {
        private final OutputStream stream;
        private final byte[] pattern;

        StreamOutput(OutputStream stream, byte[] pattern) {
            this.stream = stream;
            this.pattern = pattern;
        }

        public void write(int begin, int count) throws IOException {
            stream.write(pattern, begin, count);
        }

        public void close() throws IOException {
            stream.close();
        }
    }

    private static final class StreamInput implements Input {
        private final InputStream stream;
        private final byte[] block;
        private byte xor;

        StreamInput(InputStream stream, byte[] block) {
            this.stream = stream;
            this.block = block;
        }

        public int read() throws IOException {
            int count = stream.read(block);
            for (int i = 0; i < count; i++) {
                xor ^= block[i];
            }
            return count;
        }

        public int xor() {
            return xor & 0xff;
        }
    }

    /** Channels whose buffers lie outside the heap, so that the system calls copy into and out of them directly. */
    private static final class Tuned implements Way {
        public Output standardOutput(byte[] pattern) {
            return new ChannelOutput(new FileOutputStream(FileDescriptor.out).getChannel(), pattern);
        }

        /**
         * The stream of a child's input copies each block from the heap, and the channel in it cannot be reached. The
         * pipe is therefore opened once more through /proc (proc_pid_fd(5)), and the stream's own end closed.
         */
        public Output childInput(byte[] pattern, Process child) throws IOException {
            WritableByteChannel channel;
            OutputStream stream = child.getOutputStream();
            try {
                channel = FileChannel.open(Path.of("/proc/" + child.pid() + "/fd/0"), StandardOpenOption.WRITE);
                stream.close();
            } catch (IOException gone) {
                // The child has ended or is another user's: then the stream itself is used.
                channel = Channels.newChannel(stream);
            }
            return new ChannelOutput(channel, pattern);
        }

        public Input standardInput(int block) {
            return new ChannelInput(new FileInputStream(FileDescriptor.in).getChannel(), block);
        }
    }

    /** A direct buffer that begins on a page, so that vector instructions and copies are aligned. */
    private static ByteBuffer pages(int bytes) {
        int rounded = (bytes + PAGE - 1) / PAGE * PAGE;
        return ByteBuffer.allocateDirect(rounded + PAGE).alignedSlice(PAGE).slice(0, bytes);
    }

    private static final class ChannelOutput implements Output {
        private final WritableByteChannel channel;
        private final ByteBuffer pattern;

        ChannelOutput(WritableByteChannel channel, byte[] pattern) {
            this.channel = channel;
            this.pattern = pages(pattern.length).put(pattern);
        }

        public void write(int begin, int count) throws IOException {
            pattern.limit(begin + count).position(begin);
            while (pattern.hasRemaining()) {
                channel.write(pattern);
            }
        }

        public void close() throws IOException {
            channel.close();
        }
    }

    private static final class ChannelInput implements Input {
        private final FileChannel channel;
        private final ByteBuffer block;
        private final LongBuffer words;
        private long xor;

        ChannelInput(FileChannel channel, int block) {
            this.channel = channel;
            this.block = pages(block).order(ByteOrder.nativeOrder());
            this.words = this.block.asLongBuffer();
        }

        public int read() throws IOException {
            block.clear();
            int count = channel.read(block);
            if (count > 0) {
                xor ^= foldWords(words, count / Long.BYTES);
                for (int i = count / Long.BYTES * Long.BYTES; i < count; i++) {
                    xor ^= block.get(i) & 0xff;
                }
            }
            return count;
        }

        /** The XOR of the first words of a block, computed as two independent halves. */
        private static long foldWords(LongBuffer words, int count) {
            int half = count / 2;
            long low = 0;
            long high = 0;
            for (int i = 0; i < half; i++) {
                low ^= words.get(i);
                high ^= words.get(i + half);
            }
            return count % 2 == 0 ? low ^ high : low ^ high ^ words.get(count - 1);
        }

        /** All eight bytes of the running XOR, folded into one. */
        public int xor() {
            long folded = xor ^ xor >>> 32;
            folded ^= folded >>> 16;
            folded ^= folded >>> 8;
            return (int) (folded & 0xff);
        }
    }
}
