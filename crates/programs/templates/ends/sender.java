// {title}
// {command}
// Its arguments: COUNT (1 if not given), RATE ({what}s in a second, {rate} if not given; 0: full speed),
// and the NAME at which it meets {other}.
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.FileSystemException;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;

class Sender {
    static final int BYTES = {bytes};
@manyreceivers     static final int RECEIVERS = {receivers};

@@mechanism

    /** A message is one word again and again, the last copy cut off: its number in 40 bits, and the 24 bits of the sender's id. */
    static void fill(ByteBuffer message, long id, long number) {
        // The number is never 0xFF in each byte: that is the end mark.
        long word = number % ((1L << 8 * Math.min(BYTES, 5)) - 1) | id << 40;
        message.clear();
        while (message.remaining() >= 8) {
            message.putLong(word);
        }
        for (; message.hasRemaining(); word >>= 8) {
            message.put((byte) word);
        }
        message.clear();
    }

@unwatched     /** Sleeps until a {what} is due, counted from 0; one that is late begins at once. */
@unwatched     static void waitUntilDue(long due) {
@watched     /** Sleeps until a {what} is due, counted from 0; one that is late begins at once. In a long pause it looks whether the other ends are
@watched         there: the first send to one that died may succeed (tcp). */
@watched     static void waitUntilDue(Link[] links, long due) throws IOException {
        for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
            LockSupport.parkNanos(Math.min(left, 250_000_000));
@watched             for (int number = 0; left > 250_000_000 && number < links.length; number++) {
@watched                 links[number].reopenIfGone();
@watched             }
        }
    }

@reply     /** Whether this is a reply to a request before this one, which was sent twice because a server had died. */
@reply     static boolean isLate(ByteBuffer reply, ByteBuffer request) {
@reply         if (BYTES < 8) {
@reply             return true; // there is no id in it
@reply         }
@reply         boolean isWhole = reply.slice(8, BYTES - 8).equals(reply.slice(0, BYTES - 8));
@reply         long replyWord = reply.getLong(0), requestWord = request.getLong(0);
@reply         return isWhole && (replyWord >>> 40 != requestWord >>> 40 || replyWord < requestWord);
@reply     }
@reply 
@reply     /** Sends a request until its reply comes: a server that died has taken the request, or its reply, with it. */
@reply     static void ask(Link link, ByteBuffer request, ByteBuffer reply) throws IOException {
@reply         while (true) {
@reply             link.send(request);
@reply             while (link.receiveReply(reply)) {
@reply                 if (reply.equals(request)) {
@reply                     return;
@reply                 }
@reply                 if (!isLate(reply, request)) {
@reply                     throw new IOException("a reply arrived altered");
@reply                 }
@reply             }
@reply         }
@reply     }
@reply 
    static double run(long count, long rate, String name) throws IOException, InterruptedException {
@onelink         Link link = new Link(name);
@links         Link[] links = new Link[RECEIVERS];
@links         for (int number = 0; number < RECEIVERS; number++) {
@path @links             links[number] = new Link(name + "." + number);
@numbered @links             links[number] = new Link(String.valueOf(Integer.parseInt(name) + number));
@links         }
        long id = ThreadLocalRandom.current().nextLong(1, (1 << 24) - 1);
        ByteBuffer message = ByteBuffer.allocateDirect(BYTES).order(ByteOrder.LITTLE_ENDIAN);
@reply         ByteBuffer reply = ByteBuffer.allocateDirect(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        long began = System.nanoTime();
        for (long number = 0; number < count; number++) {
            if (rate > 0) {
                long due = began + (long) (number * 1e9 / rate);
@watched @onelink                 waitUntilDue(new Link[] {link}, due);
@watched @links                 waitUntilDue(links, due);
@unwatched                 waitUntilDue(due);
            }
            fill(message, id, number);
@stream @onelink             link.send(message);
@compete @links             links[(int) (number % RECEIVERS)].send(message); // in turn
@broadcast             for (Link link : links) {
@broadcast                 link.send(message);
@broadcast             }
@reply             ask(link, message, reply);
        }
        long took = System.nanoTime() - began;
        byte[] ones = new byte[BYTES];
        Arrays.fill(ones, (byte) 0xFF);
        ByteBuffer mark = ByteBuffer.wrap(ones);
@shared         for (int number = 1; number < RECEIVERS; number++) { // each receiver takes one
@shared             link.send(mark);
@shared         }
@onelink         link.finish(mark);
@links         for (Link link : links) {
@links             link.finish(mark);
@links         }
        return (double) took / count;
    }

    static long number(String what, String text, long least, long most) {
        try {
            long number = Long.parseLong(text);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException error) {
            // said below
        }
        System.err.println(what + ", not " + text);
        System.exit(2);
        return 0;
    }

    public static void main(String[] arguments) throws InterruptedException {
        String[] given = Arrays.copyOf(arguments, 3);
        long count = number("COUNT is a number of at least 1", given[0] == null ? "1" : given[0], 1, Long.MAX_VALUE);
        long rate = number("RATE is a number from 0 to 1000000000", given[1] == null ? "{rate}" : given[1], 0, 1000000000);
        String name = given[2] == null ? "{NAME}" : given[2];
        try {
            double ns = run(count, rate, name);
            System.out.printf(Locale.ROOT, "%.1f ns per {what}: %d of %d bytes, all as sent%n", ns, count, BYTES);
        } catch (IOException | IllegalArgumentException error) {
            // The message of a FileSystemException is often a path and no more.
            System.err.println(name + ": " + (error instanceof FileSystemException ? error : error.getMessage()));
            System.exit(1);
        }
    }
}
