// {title}
// {command}
// Its arguments: COUNT (1 if not given; 0: not known), which is how many messages it expects,
// and the NAME at which it meets {other}.
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.FileSystemException;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
@unshared @path import java.nio.channels.FileChannel;
@unshared @path import java.nio.file.Files;
@unshared @path import java.nio.file.Path;
@unshared @path import java.nio.file.StandardOpenOption;

class Receiver {
    static final int BYTES = {bytes};
    static final int SENDERS = {senders};
@links     static final int RECEIVERS = {receivers};

@@mechanism

    /** The number of the next message of each sender, by its id. */
    static final Map<Long, Long> seen = new HashMap<>();

    /** Messages of a sender follow one another. False: it has come before. */
    static boolean check(long word) throws IOException {
        long numbers = (1L << 8 * Math.min(BYTES, 5)) - 1; // they count modulo this: no message looks like an end mark
        long id = BYTES < 8 ? 0 : word >>> 40, number = word & numbers; // without an id a sender begins with number 0
@manysenders         if (BYTES < 8) {
@manysenders             return true;
@manysenders         }
        Long due = seen.get(id);
@reply         if (due != null && (number + 1) % numbers == due) {
@reply             return false; // the client sends it again if it gets no reply
@reply         }
@onesender @each         // A receiver before this one may have taken some of the first sender's messages.
@onesender @each         if (due == null && number > 0 && !seen.isEmpty()) {
@onesender @each             throw new IOException("message " + number + " came first");
@onesender @each         }
@each         if (due != null && number != due && (BYTES >= 8 || number > 0)) {
@each             throw new IOException("message " + number + " came where " + due + " was due");
@each         }
@compete @ordered         if (due != null && number < due && BYTES >= 8) { // the other receivers take those between
@compete @ordered             throw new IOException("message " + number + " came where " + due + " was due");
@compete @ordered         }
        seen.put(id, (number + 1) % numbers);
        return true;
    }

@unshared @path     /** A file beside the link, which its receiver has locked. */
@unshared @path     static Path lock;
@unshared @path 
@onereceiver     /** The link, if no other receiver has it. */
@links     /** The first link that no other receiver has. */
@unshared     static Link free(String name) throws IOException, InterruptedException {
@onereceiver         IOException last = new IOException("another receiver is there");
@links         IOException last = new IOException(RECEIVERS + " other receivers are there");
@unshared         for (int tries = 0; tries < 100; tries++, Thread.sleep(10)) {
@onereceiver             for (String link : new String[] {name}) {
@links             for (int number = 0; number < RECEIVERS; number++) {
@links @path                 String link = name + "." + number;
@links @numbered                 String link = String.valueOf(Integer.parseInt(name) + number);
@unshared @path                 lock = Path.of(link + ".lock");
@unshared @path                 FileChannel locked = FileChannel.open(lock, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
@unshared @path                 if (locked.tryLock() == null) {
@unshared @path                     locked.close();
@unshared @path                     continue;
@unshared @path                 }
@unshared @path                 lock.toFile().deleteOnExit(); // also at SIGTERM; where this program is killed it stays, and the next one takes it
@unshared                 try {
@unshared                     return new Link(link);
@unshared                 } catch (IOException error) {
@unshared                     last = error;
@unshared @path                     Files.delete(lock);
@unshared @path                     locked.close();
@unshared                 }
@unshared             }
@unshared         }
@unshared         throw last;
@unshared     }
@unshared 
    static volatile long got;
    static long began, ended;

    /** Ends the program; once, as the lock is never given back. */
    static synchronized void finish(Link link) {
        double ns = (ended - began) / (double) Math.max(got, 1);
        System.out.printf(Locale.ROOT, "%.1f ns per {what}: %d of %d bytes, all as sent%n", ns, got, BYTES);
        int status = 0;
        try {
@unshared @path             Files.deleteIfExists(lock);
            link.finish(); // the last step: if this program dies before it, its successor gets the end mark
        } catch (IOException error) {
            System.err.println(error.getMessage());
            status = 1;
        }
        Runtime.getRuntime().halt(status);
    }

    /** A sender that was killed sends no end mark: ends when no message came for three seconds after the last one. */
    static void watch(Link link, long count) {
        try {
            for (long last = -1; last < count || last != got; Thread.sleep(3000)) {
                last = got;
            }
        } catch (InterruptedException error) {
            return;
        }
        finish(link);
    }

    static void run(long count, String name) throws IOException, InterruptedException {
@shared         Link link = new Link(name);
@unshared         Link link = free(name);
        if (count > 0) {
            Thread watcher = new Thread(() -> watch(link, count));
            watcher.setDaemon(true);
            watcher.start();
        }
        ByteBuffer message = ByteBuffer.allocateDirect(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int marks = 0; marks < SENDERS;) {
            link.receive(message);
            message.clear();
            int shift = Math.min(BYTES, 8);
            if (!message.slice(shift, BYTES - shift).equals(message.slice(0, BYTES - shift))) {
                throw new IOException("a message arrived altered");
            }
            long word = 0;
            for (int at = shift - 1; at >= 0; at--) {
                word = word << 8 | message.get(at) & 0xFF;
            }
            if (word == -1L >>> 64 - 8 * shift) {
                marks++;
@connected                 link.end();
                continue;
            }
            boolean isNew = check(word);
@reply             link.sendReply(message);
            if (isNew) {
                // The clock is read where this may be the last one.
                if (got == 0 || got + 1 >= count) {
                    ended = System.nanoTime();
                }
                began = got == 0 ? ended : began;
                got = got + 1;
            }
        }
        ended = got < count ? System.nanoTime() : ended;
        finish(link);
    }

    public static void main(String[] arguments) throws InterruptedException {
        String text = arguments.length > 0 ? arguments[0] : "1";
        // It takes the arguments of {other} as well: COUNT RATE NAME.
        String name = arguments.length > 1 ? arguments[Math.min(arguments.length - 1, 2)] : "{NAME}";
        long count = -1;
        try {
            count = Long.parseLong(text);
        } catch (NumberFormatException error) {
            // said below
        }
        if (count < 0) {
            System.err.println("COUNT is a number of at least 0, not " + text);
            System.exit(2);
        }
        try {
            run(count, name);
        } catch (IOException | IllegalArgumentException error) {
            synchronized (Receiver.class) { // not while finish() ends the program
                // The message of a FileSystemException is often a path and no more.
                System.err.println(name + ": " + (error instanceof FileSystemException ? error : error.getMessage()));
                System.exit(1);
            }
        }
    }
}
