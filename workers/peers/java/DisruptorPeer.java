import com.lmax.disruptor.EventPoller;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.YieldingWaitStrategy;

/** LMAX Disruptor: a ring of preallocated events with one producer for each direction, between two threads. */
final class DisruptorPeer extends Peer {
    /** Blocks of up to this many bytes are in the field `value` of an event, longer ones in its array. */
    private static final int VALUE_MAX = Long.BYTES;
    private static final int RING_BYTES = 1 << 20;

    private static final class Block {
        int length;
        long value;
        byte[] bytes;
    }

    private final RingBuffer<Block> out;
    private final EventPoller<Block> in;
    private final EventPoller.Handler<Block> handler;
    private final byte[] sequence = sequence();
    private final boolean isValue = job.messageMax() <= VALUE_MAX;

    private DisruptorPeer(Job job, boolean isFirst, RingBuffer<Block> out, RingBuffer<Block> in) {
        super(job);
        this.out = out;
        this.in = in.newPoller();
        in.addGatingSequences(this.in.getSequence());
        handler = !isFirst && job.isRoundTrips() ? this::sendBack : this::fold;
    }

    private static RingBuffer<Block> ring(Job job) {
        int messageMax = job.messageMax();
        int depth = Math.min(Math.max(RING_BYTES / messageMax, 16), 1024);
        return RingBuffer.createSingleProducer(() -> {
            Block block = new Block();
            block.bytes = messageMax <= VALUE_MAX ? null : new byte[messageMax];
            return block;
        }, Integer.highestOneBit(depth), new YieldingWaitStrategy());
    }

    void send(int start, int length) {
        put(sequence, start, length, (long) WORDS.get(sequence, start));
    }

    private void put(byte[] bytes, int start, int length, long value) {
        // The ring's next() would sleep while the ring is full.
        while (!out.hasAvailableCapacity(1)) {
            pause();
        }
        resetTries();
        long at = out.next();
        Block block = out.get(at);
        block.length = length;
        if (isValue) {
            block.value = value;
        } else {
            System.arraycopy(bytes, start, block.bytes, 0, length);
        }
        out.publish(at);
    }

    boolean poll() {
        try {
            return in.poll(handler) == EventPoller.PollState.PROCESSING;
        } catch (Exception trouble) {
            throw new IllegalStateException(trouble);
        }
    }

    private boolean sendBack(Block block, long at, boolean isLast) {
        received += block.length;
        put(block.bytes, 0, block.length, block.value);
        return true;
    }

    private boolean fold(Block block, long at, boolean isLast) {
        int length = block.length;
        received += length;
        if (isValue) {
            folded ^= length == VALUE_MAX ? block.value : block.value & (1L << length * Byte.SIZE) - 1;
            return true;
        }
        byte[] bytes = block.bytes;
        long one = 0;
        long other = 0;
        int index = 0;
        for (; index + 16 <= length; index += 16) {
            one ^= (long) WORDS.get(bytes, index);
            other ^= (long) WORDS.get(bytes, index + 8);
        }
        for (; index < length; index++) {
            one ^= bytes[index] & 0xff;
        }
        folded ^= one ^ other;
        return true;
    }

    public static void main(String[] words) {
        orFail(() -> {
            Job job = parse(words, true);
            RingBuffer<Block> there = ring(job);
            RingBuffer<Block> back = ring(job);
            Peer first = new DisruptorPeer(job, true, there, back);
            Peer second = new DisruptorPeer(job, false, back, there);
            Thread secondThread = start(second::runSecond);
            first.runFirst();
            secondThread.join();
        });
    }
}
