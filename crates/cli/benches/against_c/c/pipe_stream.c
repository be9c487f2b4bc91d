/*
 * One way through a pipe of default size, from one process to another.
 *
 *   pipe_stream BYTES BLOCK_BYTES SENDER_CPU RECEIVER_CPU none|xor|xxh3
 *
 * none: the same block is written again and again, and nobody looks at it.
 * xor, xxh3: the sender produces every byte of every block (a copy out of a periodic tile of random bytes,
 * at an offset that rolls on), the receiver computes the checksum over every byte; it is compared with what
 * it should be after the clock has stopped.
 * Prints "BYTES ELAPSED_NS", from the barrier until the receiver has (and has checked) the last byte.
 */
#include "common.h"

#ifdef WITH_XXHASH
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

/* As in crates/payload: a prime period, so that successive blocks differ, and room to copy a block in one piece. */
enum { PERIOD_BYTES = 131071, LAP_BYTES = 65536 };

enum check { CHECK_NONE, CHECK_XOR, CHECK_XXH3 };

static unsigned char *new_tile(void) {
    unsigned char *tile = new_block(PERIOD_BYTES + LAP_BYTES);
    uint64_t state = 88172645463325252u; /* xorshift64: random enough that no two blocks are alike */
    for (size_t i = 0; i < PERIOD_BYTES; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        tile[i] = (unsigned char)(state >> 56);
    }
    memcpy(tile + PERIOD_BYTES, tile, LAP_BYTES);
    return tile;
}

/* A running checksum over the stream, however it is cut into chunks. */
struct checker {
    enum check check;
    uint64_t xored;
#ifdef WITH_XXHASH
    XXH3_state_t *xxh3;
#endif
};

static void checker_init(struct checker *checker, enum check check) {
    memset(checker, 0, sizeof *checker);
    checker->check = check;
#ifdef WITH_XXHASH
    if ((checker->xxh3 = XXH3_createState()) == NULL)
        die("XXH3_createState");
    XXH3_64bits_reset(checker->xxh3);
#endif
}

static uint64_t xor_bytes(const unsigned char *bytes, size_t len) {
    uint64_t words = 0, word;
    size_t at = 0;
    for (; at + sizeof word <= len; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word); /* a plain load, without an alignment or aliasing rule broken */
        words ^= word;
    }
    words ^= words >> 32;
    words ^= words >> 16;
    words ^= words >> 8;
    for (; at < len; at++)
        words ^= bytes[at];
    return words & 0xff;
}

static void checker_update(struct checker *checker, const unsigned char *bytes, size_t len) {
    if (checker->check == CHECK_XOR)
        checker->xored ^= xor_bytes(bytes, len);
#ifdef WITH_XXHASH
    if (checker->check == CHECK_XXH3)
        XXH3_64bits_update(checker->xxh3, bytes, len);
#endif
}

static uint64_t checker_sum(struct checker *checker) {
#ifdef WITH_XXHASH
    if (checker->check == CHECK_XXH3)
        return XXH3_64bits_digest(checker->xxh3);
#endif
    return checker->xored;
}

/* The next `len` bytes of the payload; `len` never exceeds the lap, so that one copy does. */
static size_t produce(const unsigned char *tile, size_t phase, unsigned char *block, size_t len) {
    memcpy(block, tile + phase, len);
    return (phase + len) % PERIOD_BYTES;
}

static void send_all(int fd, uint64_t bytes, size_t block_bytes, enum check check, const unsigned char *tile,
                     struct shared *shared) {
    unsigned char *block = new_block(block_bytes);
    size_t phase = 0;
    produce(tile, 0, block, block_bytes);
    barrier(shared);
    shared->started_ns = now_ns();
    for (uint64_t sent = 0; sent < bytes; sent += block_bytes) {
        if (check != CHECK_NONE)
            phase = produce(tile, phase, block, block_bytes);
        for (size_t done = 0; done < block_bytes;) {
            ssize_t wrote = write(fd, block + done, block_bytes - done);
            if (wrote >= 0)
                done += (size_t)wrote;
            else if (errno != EINTR)
                die("write");
        }
    }
}

static void receive_all(int fd, uint64_t bytes, size_t block_bytes, enum check check, struct shared *shared) {
    unsigned char *room = new_block(block_bytes);
    struct checker checker;
    checker_init(&checker, check);
    barrier(shared);
    for (uint64_t received = 0; received < bytes;) {
        ssize_t got = read(fd, room, block_bytes);
        if (got > 0) {
            checker_update(&checker, room, (size_t)got);
            received += (uint64_t)got;
        } else if (got == 0) {
            fprintf(stderr, "the sender ended early\n");
            exit(1);
        } else if (errno != EINTR) {
            die("read");
        }
    }
    /* The sum first: the bytes are not checked before it is read out. */
    shared->checksum = checker_sum(&checker);
    shared->finished_ns = now_ns();
}

static uint64_t expected_sum(const unsigned char *tile, uint64_t bytes, enum check check) {
    struct checker checker;
    checker_init(&checker, check);
    for (uint64_t left = bytes; left > 0;) {
        size_t len = left < PERIOD_BYTES ? (size_t)left : PERIOD_BYTES;
        checker_update(&checker, tile, len);
        left -= len;
    }
    return checker_sum(&checker);
}

static enum check check_named(const char *name) {
    if (strcmp(name, "none") == 0)
        return CHECK_NONE;
    if (strcmp(name, "xor") == 0)
        return CHECK_XOR;
#ifdef WITH_XXHASH
    if (strcmp(name, "xxh3") == 0)
        return CHECK_XXH3;
#endif
    fprintf(stderr, "no such check in this build: %s\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: pipe_stream BYTES BLOCK_BYTES SENDER_CPU RECEIVER_CPU none|xor|xxh3\n");
        return 2;
    }
    uint64_t bytes = number(argv[1]);
    size_t block_bytes = number(argv[2]);
    uint64_t sender_cpu = number(argv[3]), receiver_cpu = number(argv[4]);
    enum check check = check_named(argv[5]);
    if (block_bytes == 0 || block_bytes > LAP_BYTES || bytes % block_bytes != 0) {
        fprintf(stderr, "blocks are of 1 to %d bytes, and BYTES a whole number of them\n", LAP_BYTES);
        return 2;
    }

    unsigned char *tile = new_tile();
    struct shared *shared = map_shared();
    int ends[2];
    if (pipe(ends) != 0)
        die("pipe");

    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        close(ends[1]); /* or the receiver would never see the end of a dead sender */
        settle_on(receiver_cpu);
        receive_all(ends[0], bytes, block_bytes, check, shared);
        exit(0);
    }
    close(ends[0]);
    settle_on(sender_cpu);
    send_all(ends[1], bytes, block_bytes, check, tile, shared);
    reap(child);

    if (check != CHECK_NONE && shared->checksum != expected_sum(tile, bytes, check)) {
        fprintf(stderr, "what arrived is not what was sent\n");
        return 1;
    }
    printf("%llu %llu\n", (unsigned long long)bytes,
           (unsigned long long)(shared->finished_ns - shared->started_ns));
    return 0;
}
