import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** Aeron IPC: a log in memory that two processes map, one for each direction. The first end runs the media driver in its process. */
final class AeronPeer extends Peer {
    /** With the longest frame that Aeron allows (mtu); a longer message is fragmented. */
    private static final String CHANNEL = "aeron:ipc?term-length=16m|mtu=65504";
    private static final int THERE = 1;
    private static final int BACK = 2;
    private static final int FRAGMENTS_MAX = 64;
    /** A busy machine may not run the driver for a while. */
    private static final long TIMEOUT_MS = 60_000;
    private static final long TIMEOUT_NS = TIMEOUT_MS * 1_000_000;

    private final ExclusivePublication out;
    private final Subscription in;
    private final FragmentAssembler handler = new FragmentAssembler(this::arrived);
    private final UnsafeBuffer sequence = new UnsafeBuffer(sequence());
    private final BufferClaim claim = new BufferClaim();
    private final boolean sendsBack = job.role().equals("echo");

    private AeronPeer(Job job, Aeron aeron) {
        super(job);
        in = aeron.addSubscription(CHANNEL, job.isFirst() ? BACK : THERE);
        out = aeron.addExclusivePublication(CHANNEL, job.isFirst() ? THERE : BACK);
        while (!out.isConnected() || !in.isConnected()) {
            Thread.yield();
        }
    }

    void send(int start, int length) {
        put(sequence, start, length);
    }

    private void put(DirectBuffer bytes, int start, int length) {
        while (true) {
            long at;
            if (length <= out.maxPayloadLength()) {
                at = out.tryClaim(length, claim);
                if (at > 0) {
                    claim.putBytes(bytes, start, length).commit();
                }
            } else {
                at = out.offer(bytes, start, length);
            }
            if (at > 0) {
                resetTries();
                return;
            }
            if (at != Publication.BACK_PRESSURED && at != Publication.ADMIN_ACTION) {
                throw new IllegalStateException("the other end is gone: " + Publication.errorString(at));
            }
            pause();
        }
    }

    boolean poll() {
        return in.poll(handler, FRAGMENTS_MAX) > 0;
    }

    private void arrived(DirectBuffer bytes, int start, int length, Header header) {
        received += length;
        if (sendsBack) {
            put(bytes, start, length);
            return;
        }
        long one = 0;
        long other = 0;
        int index = start;
        int end = start + length;
        for (; index + 16 <= end; index += 16) {
            one ^= bytes.getLong(index);
            other ^= bytes.getLong(index + 8);
        }
        if (index + 8 <= end) {
            one ^= bytes.getLong(index);
            index += 8;
        }
        if (index + 4 <= end) {
            one ^= bytes.getInt(index) & 0xffff_ffffL;
            index += 4;
        }
        for (; index < end; index++) {
            one ^= bytes.getByte(index) & 0xff;
        }
        folded ^= one ^ other;
    }

    /** The driver's files lie in the private folder, so that nothing is left elsewhere if a process is killed. */
    private static String folder(Job job) {
        return job.folder().resolve("aeron").toString();
    }

    private static void startDriver(Job job) {
        MediaDriver.launch(new MediaDriver.Context().aeronDirectoryName(folder(job)).threadingMode(ThreadingMode.SHARED)
                .driverTimeoutMs(TIMEOUT_MS).clientLivenessTimeoutNs(TIMEOUT_NS).publicationUnblockTimeoutNs(2 * TIMEOUT_NS));
    }

    public static void main(String[] words) {
        orFail(() -> {
            Job job = parse(words, false);
            Thread child = job.child().length == 0 ? null : startChild(job);
            if (job.isFirst()) {
                startDriver(job);
            }
            Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(folder(job)).driverTimeoutMs(TIMEOUT_MS));
            Peer end = new AeronPeer(job, aeron);
            if (job.isFirst()) {
                end.runFirst();
            } else {
                end.runSecond();
            }
            if (child != null) {
                child.join();
            }
            Runtime.getRuntime().halt(0);
        });
    }
}
