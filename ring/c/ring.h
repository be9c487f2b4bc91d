/* ring.h: whole messages through shared memory, from one sender to one receiver (processes, containers or threads).
   Copy it: MIT or Apache-2.0, as hosepipe is. C11 (gcc, clang), Linux, no library; 32 and 64 bits. The bytes in memory are described in
   LAYOUT.md, the same words in Rust and Python beside this folder. Include it first, or define _GNU_SOURCE.

       struct ring_end end;                                              struct ring_end end;
       ring_open(&end, PATH, 1 << 20, RING_SENDER, RING_FUTEX);          ring_open(&end, PATH, 1 << 20, RING_RECEIVER, RING_FUTEX);
       ring_send(&end, "hello", 5);                                      ring_peek(&end, &message, &bytes);
       ring_finish(&end), ring_close(&end);                              ring_close(&end);

   No system call while both ends keep up. An end that was killed at any instruction loses nothing that was published; a new end with the
   same role goes on where it stopped, and only the message that a killed receiver had in hand comes a second time. */
#ifndef RING_H
#define RING_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum ring_role { RING_SENDER, RING_RECEIVER };
/* What an end does that must wait: reads the word again and again; sleeps in futex(2); sleeps in poll(2) (an eventfd, for rings of
   ring_offer and ring_accept); or returns RING_AGAIN. */
enum ring_wait { RING_SPIN, RING_FUTEX, RING_EVENTFD, RING_NOWAIT };
/* RING_ENDED: the sender has finished. RING_ABSENT: this end waits, and the other one is not there; call again to go on waiting. */
enum ring_result { RING_OK, RING_ENDED, RING_ABSENT, RING_AGAIN, RING_DAMAGED, RING_TOO_LARGE };

enum {
    RING_MAGIC = 0x676e6972, /* "ring" */
    RING_VERSION = 3,
    RING_HEAD_BYTES = 4096,
    RING_LINE = 128,           /* CPUs fetch cache lines in pairs */
    RING_ALIGN_FROM = 1024,    /* messages of at least so many bytes begin at a multiple of 64 */
    RING_PAUSES = 1024,        /* most that a receiver waits for a stream to run ahead: ten microseconds or so */
    RING_TRIES = 1024,         /* one whose messages come one by one makes such a wait once in this many */
    RING_POLLS = 100,          /* looks before a sleep: some microseconds */
    RING_SPIN_POLLS = 1 << 16, /* looks before a spinning end asks whether the other one is there: some milliseconds */
    RING_SLEEP_MS = 250        /* a sleeping end asks as often */
};
/* The header of a record: 0, it is not there yet; or the length plus 1; or one of these two. */
#define RING_SKIP UINT32_MAX      /* go on at the first byte */
#define RING_END (UINT32_MAX - 1) /* the sender has finished */
#define RING_ALIGNED (1u << 31)   /* beside a length: the message begins at the next multiple of 64, and not right behind */
#define RING_RUN (1u << 30)       /* the record is a run: messages of this length behind a second word, which says how far they go */

/* How an end sleeps: 0 (it does not), 1 (futex), 2 (eventfd); and whether it lacks membarrier(2), so that the other end needs a fence. */
struct ring_sleeper {
    _Alignas(RING_LINE) _Atomic uint32_t sleeps;
    _Atomic uint32_t needs_fence;
};
typedef uint64_t __attribute__((may_alias)) ring_both_; /* the two in one load, where the machine has one */

struct ring_head {
    _Atomic uint32_t magic; /* written last */
    uint32_t version, head_bytes, capacity;
    _Alignas(RING_LINE) _Atomic uint32_t room;  /* positions count bytes, without end: the receiver has given back so many, */
    _Alignas(RING_LINE) _Atomic uint32_t taken; /* and has done with so many */
    struct ring_sleeper sleepers[2];            /* of the sender, of the receiver */
};
_Static_assert(offsetof(struct ring_head, room) == 128 && offsetof(struct ring_head, taken) == 256 &&
               offsetof(struct ring_head, sleepers) == 384 && offsetof(struct ring_sleeper, needs_fence) == 4 &&
               sizeof(struct ring_sleeper) == RING_LINE, "LAYOUT.md");

/* Room for messages of one length that share a record, or such messages: `count` of them, of `bytes` each, `stride` bytes apart (the
   length up to a multiple of 4; of 64, for 1024 bytes and more). */
struct ring_run {
    char *payload;
    size_t bytes, stride, count;
};

/* One end, of one thread at a time; two ends of one program are faster 128 bytes apart. A child that forks keeps the parent's end alive until
   it executes another program or closes `file`. */
struct ring_end {
    struct ring_head *head; /* the bytes of records are behind it */
    uint32_t mask;          /* the capacity, a power of two, less 1 */
    uint32_t own;           /* where the next record begins */
    uint32_t given;         /* where the first one begins that is not published; the receiver: what it has given back */
    uint32_t held;          /* bytes of the record that was reserved (up to its payload), or peeked at (all) */
    uint32_t seen;          /* the word that the other end writes, as last read: `room`; the receiver: the next header, 0 */
    uint32_t first;         /* the sender: the header at `given`, which is written last; */
    uint32_t limit;         /* up to here there is room in one piece */
    uint32_t streak, alone; /* messages since the receiver had to wait; how often it was one alone */
    uint32_t usual, whole;  /* the length that came last, and the bytes of its record */
    uint32_t run_bytes, run_stride, run_last, run_next; /* the run that is read: its messages; 0: none; positions of the last one, and behind */
    uint32_t needs_fence;
    enum ring_role role;
    enum ring_wait wait;
    int file;                  /* holds the lock of its role; -1: memory of one process */
    int own_event, peer_event; /* eventfds, or -1 */
};

/* Not in the way of a message that need not wait. */
#define RING_COLD_ static __attribute__((cold, noinline, unused))

static inline void ring_pause_(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static inline int ring_lock_(int file, int command, int byte, short type) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int failed;
    while ((failed = fcntl(file, command, &lock)) && errno == EINTR) {}
    return failed ? -1 : lock.l_type;
}

/* Whether there is another end. The kernel releases the lock of an end that dies, whatever the cause, and in any container. */
static inline int ring_peer_is_there(const struct ring_end *end) {
    return end->file < 0 || ring_lock_(end->file, F_OFD_GETLK, !end->role, F_WRLCK) != F_UNLCK;
}

/* The record at this position begins with its header. */
static inline _Atomic uint32_t *ring_header_(const struct ring_end *end, uint32_t position) {
    return (_Atomic uint32_t *)(void *)((char *)end->head + RING_HEAD_BYTES + (position & end->mask));
}
/* The receiver: whether there is a message of the same run behind the one in hand. */
static inline int ring_has_rest_(const struct ring_end *end) {
    return end->run_stride && end->own + end->held != end->run_next;
}
/* Whether the word that the other end writes is as it was. */
static inline int ring_is_unchanged_(const struct ring_end *end) {
    if (ring_has_rest_(end)) return 0;
    _Atomic uint32_t *word = end->role == RING_SENDER ? &end->head->room : ring_header_(end, end->own + end->held);
    return atomic_load_explicit(word, memory_order_acquire) == end->seen;
}

RING_COLD_ void ring_wake_(const struct ring_end *end, struct ring_sleeper *peer) {
    atomic_thread_fence(memory_order_seq_cst);
    uint32_t sleeps = atomic_load_explicit(&peer->sleeps, memory_order_relaxed);
    if (sleeps) atomic_store_explicit(&peer->sleeps, 0, memory_order_relaxed);
    if (sleeps == 1) syscall(SYS_futex, &peer->sleeps, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);
    if (sleeps == 2 && end->peer_event >= 0 && write(end->peer_event, &(uint64_t){1}, 8) < 0) {} /* full: it is awake */
}

/* A word was stored: either this end sees that the other one sleeps, or that one sees the word, because its membarrier(2) is a fence here
   as well. */
static inline void ring_notify_(const struct ring_end *end, struct ring_sleeper *peer) {
    atomic_signal_fence(memory_order_seq_cst);
    uint64_t both = __atomic_always_lock_free(8, 0) ? __atomic_load_n((const ring_both_ *)peer, __ATOMIC_RELAXED)
                                                    : peer->sleeps | peer->needs_fence;
    if (both | end->needs_fence) ring_wake_(end, peer);
}

/* Says that this end sleeps; false if the word has changed, and it must not sleep. */
static inline int ring_announce_sleep_(const struct ring_end *end, uint32_t how) {
    atomic_store_explicit(&end->head->sleepers[end->role].sleeps, how, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (!end->needs_fence) syscall(SYS_membarrier, 2 /* MEMBARRIER_CMD_GLOBAL_EXPEDITED */, 0, 0);
    return ring_is_unchanged_(end);
}

/* Before a poll(2) that includes ring_event(): true if there is nothing to do, and the poll may sleep. */
static inline int ring_arm(struct ring_end *end) { return ring_is_unchanged_(end) && ring_announce_sleep_(end, 2); }
/* The descriptor to poll for POLLIN; each wake-up needs one read(2) of 8 bytes. */
static inline int ring_event(const struct ring_end *end) { return end->own_event; }

RING_COLD_ void ring_sleep_(const struct ring_end *end) {
    _Atomic uint32_t *sleeps = &end->head->sleepers[end->role].sleeps;
    struct { long s, ns; } limit = {0, RING_SLEEP_MS * 1000000L};
    int by_event = end->wait == RING_EVENTFD && end->own_event >= 0;
    uint64_t count;
    if (ring_announce_sleep_(end, by_event ? 2 : 1)) {
        if (!by_event) syscall(SYS_futex, sleeps, 0 /* FUTEX_WAIT */, 1, &limit, NULL, 0);
        else if (poll(&(struct pollfd){.fd = end->own_event, .events = POLLIN}, 1, RING_SLEEP_MS) > 0 &&
                 read(end->own_event, &count, 8) < 0) {} /* another thread was faster: looks again */
    }
    atomic_store_explicit(sleeps, 0, memory_order_relaxed);
}

/* Waits until the word that the other end writes differs from `seen`. */
RING_COLD_ enum ring_result ring_wait_(const struct ring_end *end) {
    for (int is_absent = 0;;) {
        for (int polls = end->wait == RING_NOWAIT ? 1 : end->wait == RING_SPIN ? RING_SPIN_POLLS : RING_POLLS; polls > 0; polls--) {
            if (!ring_is_unchanged_(end)) return RING_OK;
            ring_pause_();
        }
        if (end->wait == RING_NOWAIT) return RING_AGAIN;
        if (is_absent) return RING_ABSENT;
        if (end->wait != RING_SPIN) ring_sleep_(end);
        /* What died may have published before: one more look. */
        is_absent = ring_is_unchanged_(end) && !ring_peer_is_there(end);
        if (is_absent && end->wait == RING_SPIN) poll(NULL, 0, 1); /* none is there whose answer could be late */
    }
}

/* From a record to its first message, behind so many bytes of header; from one message of a run to the next; the bytes of a record. */
static inline uint32_t ring_start_(uint32_t at, uint32_t header, int is_aligned) { return is_aligned ? (at + header + 63) / 64 * 64 - at : header; }
static inline uint32_t ring_stride_(uint32_t bytes, int is_aligned) { return is_aligned ? (bytes + 63) & ~63u : (bytes + 3) & ~3u; }
static inline uint32_t ring_whole_(uint32_t start, uint32_t bytes) { return (start + bytes + 7) & ~7u; }

/* ---- The sender ---- */

/* The record at `own` is written. The first header of a batch is written last, by ring_publish. */
static inline void ring_mark_(struct ring_end *end, uint32_t header, uint32_t whole) {
    uint32_t own = end->own;
    end->own = own + whole;
    if (end->given == own) end->first = header;
    else atomic_store_explicit(ring_header_(end, own), header, memory_order_relaxed);
}

/* Makes all records before `own` visible. */
static inline void ring_publish(struct ring_end *end) {
    struct ring_head *head = end->head;
    _Atomic uint32_t *next = ring_header_(end, end->own), *header = ring_header_(end, end->given);
    uint32_t first = end->first;
    if (end->given == end->own) return;
    end->given = end->own;
    atomic_store_explicit(next, 0, memory_order_relaxed);
    atomic_store_explicit(header, first, memory_order_release);
    ring_notify_(end, &head->sleepers[RING_RECEIVER]);
}

/* Waits until there is room for so many bytes and the header behind them. */
RING_COLD_ enum ring_result ring_wait_for_room_(struct ring_end *end, uint32_t bytes) {
    uint32_t at = end->own & end->mask;
    while (end->own + bytes + 7 - end->seen > end->mask) {
        ring_publish(end); /* the receiver must take what is there */
        enum ring_result result = ring_wait_(end);
        if (result != RING_OK) return result;
        end->seen = atomic_load_explicit(&end->head->room, memory_order_acquire);
        if (end->seen % 8 || end->own - end->seen > end->mask) return RING_DAMAGED;
    }
    uint32_t room = end->seen + end->mask - 7 - end->own, left = end->mask + 1 - at;
    end->limit = end->own + (room < left ? room : left);
    return RING_OK;
}

/* Room for so many bytes behind the header of the next record, in `held`, and the header behind them. */
static inline enum ring_result ring_make_room_(struct ring_end *end, uint32_t header, size_t bytes, int is_aligned) {
    for (;;) {
        if (bytes > end->mask - 71) return RING_TOO_LARGE;
        uint32_t at = end->own & end->mask, left = end->mask + 1 - at;
        end->held = ring_start_(at, header, is_aligned);
        int is_skip = end->held + bytes > left; /* a record is in one piece: this one begins at the first byte */
        enum ring_result result = ring_wait_for_room_(end, is_skip ? left : ring_whole_(end->held, bytes));
        if (result != RING_OK || !is_skip) return result;
        ring_mark_(end, RING_SKIP, left);
    }
}

/* Room for a message of up to `bytes`, to be written in place; waits until there is. */
RING_COLD_ enum ring_result ring_reserve(struct ring_end *end, size_t bytes, void **payload) {
    enum ring_result result = ring_make_room_(end, 4, bytes, bytes >= RING_ALIGN_FROM);
    *payload = (char *)ring_header_(end, end->own) + end->held;
    return result;
}

/* The reserved message is written, and this long (at most as reserved); visible after ring_publish. */
static inline void ring_stage(struct ring_end *end, size_t bytes) {
    ring_mark_(end, ((uint32_t)bytes + 1) | (end->held > 4 ? RING_ALIGNED : 0), ring_whole_(end->held, bytes));
}
/* The same, visible at once. */
static inline void ring_commit(struct ring_end *end, size_t bytes) { ring_stage(end, bytes), ring_publish(end); }

RING_COLD_ enum ring_result ring_push_slowly_(struct ring_end *end, const void *message, size_t bytes) {
    void *payload;
    enum ring_result result = ring_reserve(end, bytes, &payload);
    if (result == RING_OK) memcpy(payload, message, bytes), ring_stage(end, bytes);
    return result;
}
/* Copies a message into the ring. A batch: several of these, then one ring_publish. */
static inline enum ring_result ring_push(struct ring_end *end, const void *message, size_t bytes) {
    uint32_t whole = ring_whole_(4, bytes);
    if (bytes >= RING_ALIGN_FROM || whole > end->limit - end->own) return ring_push_slowly_(end, message, bytes);
    memcpy(ring_header_(end, end->own) + 1, message, bytes);
    ring_mark_(end, (uint32_t)bytes + 1, whole);
    return RING_OK;
}
static inline enum ring_result ring_send(struct ring_end *end, const void *message, size_t bytes) {
    enum ring_result result = ring_push(end, message, bytes);
    if (result == RING_OK) ring_publish(end);
    return result;
}

/* Room for up to `count` messages of `bytes` each (1 or more) that share a record: at least one, and no more than an eighth of the ring
   holds. Waits until there is. */
static inline enum ring_result ring_reserve_run(struct ring_end *end, size_t bytes, size_t count, struct ring_run *run) {
    int is_aligned = bytes >= RING_ALIGN_FROM;
    if (bytes == 0 || bytes > end->mask) return RING_TOO_LARGE;
    uint32_t stride = ring_stride_(bytes, is_aligned), most = (end->mask + 1) / 8 / stride;
    if (count > most) count = most;
    if (count == 0) count = 1;
    enum ring_result result = ring_make_room_(end, 8, (count - 1) * stride + bytes, is_aligned);
    *run = (struct ring_run){(char *)ring_header_(end, end->own) + end->held, bytes, stride, count};
    return result;
}
/* The first `count` messages (at least 1) of the reserved run are written; visible at once. */
static inline void ring_commit_run(struct ring_end *end, const struct ring_run *run, size_t count) {
    uint32_t bytes = run->bytes, stop = end->held + (count - 1) * run->stride + bytes;
    memcpy(ring_header_(end, end->own) + 1, &stop, 4);
    ring_mark_(end, (bytes + 1) | RING_RUN | (bytes >= RING_ALIGN_FROM ? RING_ALIGNED : 0), ring_whole_(stop, 0));
    ring_publish(end);
}

/* After its last message: the receiver gets RING_ENDED after all messages before. */
static inline enum ring_result ring_finish(struct ring_end *end) {
    enum ring_result result = ring_wait_for_room_(end, 8);
    if (result == RING_OK) ring_mark_(end, RING_END, 8), ring_publish(end);
    return result;
}

/* Whether the receiver has done with all that was published. */
static inline int ring_is_drained(const struct ring_end *end) {
    return atomic_load_explicit(&end->head->taken, memory_order_acquire) == end->given;
}

/* ---- The receiver ---- */

/* Up to a record: what is done with of a run is found from the run's header. */
RING_COLD_ void ring_give_back_(struct ring_end *end) {
    if (end->run_stride) return;
    end->given = end->own;
    atomic_store_explicit(&end->head->room, end->own, memory_order_release);
    ring_notify_(end, &end->head->sleepers[RING_SENDER]);
}

/* The message in hand is done with: a receiver that is killed after this does not get it again. Asking for the next one does the same.
   Room is given back an eighth of the ring at a time, which keeps the word's cache line with the sender. */
static inline uint32_t ring_release(struct ring_end *end) {
    uint32_t own = end->own + end->held, is_due = own - end->given > end->mask / 8;
    end->own = own, end->held = 0, end->streak++;
    if (own == end->run_next) end->run_stride = 0;
    atomic_store_explicit(&end->head->taken, own, memory_order_release);
    if (is_due) ring_give_back_(end);
    return own;
}

/* Whether nothing was published after the message in hand. */
static inline int ring_is_last(const struct ring_end *end) { return ring_is_unchanged_(end); }

/* A record: its bytes; those from its header to its first message and to the end of the last one; of a message; and from one to the next
   (0: there is one). */
struct ring_record_ { uint32_t whole, start, stop, length, stride; };

/* The record with this header at `position`; 0 bytes: it leaves the ring. */
static inline struct ring_record_ ring_parse_(const struct ring_end *end, uint32_t position, uint32_t header) {
    uint32_t at = position & end->mask, left = end->mask + 1 - at;
    struct ring_record_ record = {.length = (header & (RING_RUN - 1)) - 1};
    int is_aligned = header >= RING_ALIGNED;
    if (header == RING_END) record.whole = 8;
    if (header == RING_SKIP) record.whole = at > 0 ? left : 0; /* a whole lap would have no end */
    if (header >= RING_END || record.length > left) return record;
    record.start = ring_start_(at, header & RING_RUN ? 8 : 4, is_aligned), record.stop = record.start + record.length;
    if (header & RING_RUN) {
        /* Read once: the other process could change it after it was checked. */
        uint32_t stop = atomic_load_explicit(ring_header_(end, position) + 1, memory_order_relaxed);
        record.stride = ring_stride_(record.length, is_aligned);
        if (record.length == 0 || stop < record.stop || (stop - record.stop) % record.stride) return record;
        record.stop = stop;
    }
    if (record.stop <= left) record.whole = ring_whole_(record.stop, 0);
    return record;
}
static inline void ring_enter_run_(struct ring_end *end, uint32_t position, struct ring_record_ record) {
    end->run_bytes = record.length, end->run_stride = record.stride;
    end->run_last = position + record.stop - record.length, end->run_next = position + record.whole;
}
/* The message of the run at `own` is in hand. */
static inline enum ring_result ring_peek_in_run_(struct ring_end *end, const void **payload, size_t *bytes) {
    end->held = end->own == end->run_last ? end->run_next - end->own : end->run_stride;
    *payload = ring_header_(end, end->own), *bytes = end->run_bytes;
    return RING_OK;
}

/* Before a wait for a message. A stream is faster if the two ends are not at the same cache line: the more messages came since the last
   wait, the longer. An answer to a request comes alone, and at once. */
static inline void ring_look_away_(struct ring_end *end) {
    end->alone = end->streak > 1 ? 0 : end->alone + 1;
    uint32_t pauses = end->alone % RING_TRIES || end->wait == RING_NOWAIT ? 0 : end->streak < RING_PAUSES / 64 ? end->streak * 64 : RING_PAUSES;
    while (pauses-- > 0) ring_pause_();
    end->streak = 0;
}

/* For what is not a small message that is there. */
RING_COLD_ enum ring_result ring_peek_slowly_(struct ring_end *end, const void **payload, size_t *bytes) {
    for (;;) {
        /* Read once: the other process could change it after it was checked. */
        uint32_t header = atomic_load_explicit(ring_header_(end, end->own), memory_order_acquire);
        if (header == 0) {
            if (end->given != end->own) ring_give_back_(end); /* the sender may wait for more than an eighth */
            ring_look_away_(end);
            enum ring_result result = ring_wait_(end);
            if (result != RING_OK) return result;
            continue;
        }
        struct ring_record_ record = ring_parse_(end, end->own, header);
        if (record.whole == 0) return RING_DAMAGED;
        if (record.stride) {
            ring_enter_run_(end, end->own, record);
            end->own += record.start;
            return ring_peek_in_run_(end, payload, bytes);
        }
        end->held = record.whole;
        if (header == RING_END) return RING_ENDED;
        *payload = (char *)ring_header_(end, end->own) + record.start, *bytes = record.length;
        if (header != RING_SKIP) return RING_OK;
        ring_release(end);
    }
}

/* A message in place, valid until the next call; waits until there is one. */
static inline enum ring_result ring_peek(struct ring_end *end, const void **payload, size_t *bytes) {
    uint32_t own = ring_release(end);
    if (end->run_stride) return ring_peek_in_run_(end, payload, bytes);
    uint32_t most = (~own & end->mask) - 3; /* bytes of a message before the end of the ring */
    _Atomic uint32_t *header = ring_header_(end, own);
    uint32_t length = atomic_load_explicit(header, memory_order_acquire) - 1;
    if (length > most) return ring_peek_slowly_(end, payload, bytes); /* all headers but that of a small message are larger */
    /* The next length is likely the same, and a branch that is predicted needs not wait for the header to come. */
    if (length != end->usual) end->usual = length, end->whole = ring_whole_(4, length);
    end->held = end->whole;
    *payload = header + 1, *bytes = length;
    return RING_OK;
}

/* The messages of a run in place, or of what is left of it; one that was sent alone is a run of one. They are done with, and come again
   after a death, together. */
static inline enum ring_result ring_peek_run(struct ring_end *end, struct ring_run *run) {
    const void *payload;
    enum ring_result result = ring_peek(end, &payload, &run->bytes);
    if (result != RING_OK) return result;
    run->payload = (char *)payload, run->stride = end->run_stride ? end->run_stride : ring_stride_(run->bytes, 0), run->count = 1;
    if (end->run_stride) run->count += (end->run_last - end->own) / end->run_stride, end->held = end->run_next - end->own;
    end->streak += run->count - 1;
    return RING_OK;
}

/* Copies a message. RING_TOO_LARGE: it has more than `room` bytes, `*bytes`, and stays. */
static inline enum ring_result ring_receive(struct ring_end *end, void *message, size_t room, size_t *bytes) {
    const void *payload;
    enum ring_result result = ring_peek(end, &payload, bytes);
    if (result == RING_OK && *bytes > room) return end->held = 0, RING_TOO_LARGE;
    if (result == RING_OK) memcpy(message, payload, *bytes);
    return result;
}

/* ---- Both: open and close ---- */

/* An end of a ring in memory of this program (RING_HEAD_BYTES + capacity, aligned to 128, zeroed before the first end): it goes on from
   the words there. -1: they make no sense. */
static inline int ring_attach(struct ring_end *end, void *memory, uint32_t capacity, enum ring_role role, enum ring_wait wait) {
    struct ring_head *head = memory;
    uint32_t room = atomic_load(&head->room), taken = atomic_load(&head->taken), header, whole;
    *end = (struct ring_end){.head = head, .mask = capacity - 1, .own = room, .given = room, .role = role, .wait = wait, .file = -1,
                             .own_event = -1, .peer_event = -1, .usual = UINT32_MAX};
    end->needs_fence = syscall(SYS_membarrier, 4 /* MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED */, 0, 0) != 0;
    atomic_store(&head->sleepers[role].needs_fence, end->needs_fence);
    atomic_store(&head->sleepers[role].sleeps, 0);
    if (room % 8 || taken - room > capacity - 8) return -1;
    /* Only the records say where they begin: the sender goes on behind the last one, the receiver where it was, also in the middle of a run. */
    for (; role == RING_SENDER || end->own != taken; end->own += whole) {
        header = atomic_load(ring_header_(end, end->own));
        if (header == 0 && role == RING_SENDER) break;
        struct ring_record_ record = ring_parse_(end, end->own, header);
        uint32_t done = taken - end->own;
        whole = record.whole;
        if (whole == 0 || end->own + whole - room > capacity - 8) return -1;
        if (role == RING_SENDER || done >= whole) continue;
        if (!record.stride || done < record.start || (done - record.start) % record.stride || done + record.length > record.stop) return -1;
        ring_enter_run_(end, end->own, record), whole = done;
    }
    if (role == RING_SENDER) end->seen = room, end->given = end->limit = end->own;
    return 0;
}

/* Lets go of the ring, and of the message in hand. The file stays. */
static inline void ring_close(struct ring_end *end) {
    if (end->role == RING_SENDER) ring_publish(end);
    else ring_release(end), ring_give_back_(end);
    if (end->file < 0) return;
    munmap(end->head, RING_HEAD_BYTES + (size_t)end->mask + 1);
    close(end->file);
    if (end->own_event >= 0) close(end->own_event), close(end->peer_event);
}

static inline int ring_fail_(int file, int error) { return close(file), errno = error, -1; }

/* An end of the ring in a file, which it then owns. The capacity (a power of two, 4096 to 2^30) counts for a new ring only. 0; or -1 and
   errno: EBUSY (such an end is alive), EINVAL (no such capacity), EPROTO (the file is no ring of this version). */
static inline int ring_open_file(struct ring_end *end, int file, uint32_t capacity, enum ring_role role, enum ring_wait wait) {
    const uint32_t expected[3] = {RING_MAGIC, RING_VERSION, RING_HEAD_BYTES};
    uint32_t words[4] = {0};
    struct stat stat;
    if (ring_lock_(file, F_OFD_SETLK, role, F_WRLCK) < 0) return ring_fail_(file, errno == EAGAIN || errno == EACCES ? EBUSY : errno);
    /* The setup is repeated by the next end if this one dies in it. */
    if (ring_lock_(file, F_OFD_SETLKW, 2, F_WRLCK) < 0 || fstat(file, &stat)) return ring_fail_(file, errno);
    if (!S_ISREG(stat.st_mode) || pread(file, words, sizeof words, 0) < 0) return ring_fail_(file, EPROTO);
    int is_new = words[0] == 0;
    for (int i = 0; i < 3; i++)
        if (words[i] != expected[i] && !(is_new && words[i] == 0)) return ring_fail_(file, EPROTO);
    if (!is_new) capacity = words[3];
    if (capacity < 4096 || capacity > 1 << 30 || (capacity & (capacity - 1))) return ring_fail_(file, is_new ? EINVAL : EPROTO);
    off_t whole = (off_t)(RING_HEAD_BYTES + capacity);
    if (is_new ? stat.st_size > whole : stat.st_size < whole) return ring_fail_(file, EPROTO);
    /* All of it now: a full file system is an error here, and a signal later. */
    if (is_new && fallocate(file, 0, 0, whole) && (errno != EOPNOTSUPP || ftruncate(file, whole))) return ring_fail_(file, errno);
    struct ring_head *head = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (head == MAP_FAILED) return ring_fail_(file, errno);
    if (is_new) {
        head->version = RING_VERSION, head->head_bytes = RING_HEAD_BYTES, head->capacity = capacity;
        atomic_store(&head->magic, RING_MAGIC);
    }
    ring_lock_(file, F_OFD_SETLK, 2, F_UNLCK);
    int failed = ring_attach(end, head, capacity, role, wait);
    end->file = file;
    return failed ? munmap(head, whole), ring_fail_(file, EPROTO) : 0;
}

/* The same by its path; the file is made if there is none. */
static inline int ring_open(struct ring_end *end, const char *path, uint32_t capacity, enum ring_role role, enum ring_wait wait) {
    for (;;) {
        struct stat stat;
        int flags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, file = open(path, flags);
        if (file < 0 && errno == ENOENT) file = open(path, flags | O_CREAT, 0600);
        if (file < 0 || ring_open_file(end, file, capacity, role, wait)) return -1;
        if (fstat(file, &stat) || stat.st_nlink > 0) return 0;
        ring_close(end); /* it was removed before this end had its lock */
    }
}

/* ---- A ring without a name, over a connected Unix socket: a memfd and two eventfds. The socket's end of file also tells of a death. ---- */

/* Sends one byte and three descriptors, or receives them (`call` is sendmsg or recvmsg). 0, or -1 and errno. */
static inline int ring_pass_(int socket, int sends, char *role, int files[3]) {
    union { struct cmsghdr first; char bytes[CMSG_SPACE(3 * sizeof(int))]; } control = {
        .first = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(3 * sizeof(int))}};
    struct iovec text = {role, 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (sends) memcpy(CMSG_DATA(&control.first), files, 3 * sizeof(int));
    ssize_t passed = sends ? sendmsg(socket, &message, MSG_NOSIGNAL) : recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (passed < 0) return -1;
    if (passed == 0 || message.msg_controllen < sizeof(struct cmsghdr) || control.first.cmsg_type != SCM_RIGHTS ||
        control.first.cmsg_len != CMSG_LEN(3 * sizeof(int))) return errno = EPROTO, -1;
    if (!sends) memcpy(files, CMSG_DATA(&control.first), 3 * sizeof(int));
    return 0;
}

/* Makes a ring, opens this end of it and sends the other one. 0, or -1 and errno. */
static inline int ring_offer(struct ring_end *end, int socket, uint32_t capacity, enum ring_role role, enum ring_wait wait) {
    char other = (char)!role;
    int file = syscall(SYS_memfd_create, "ring", 3 /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);
    if (file < 0 || ring_open_file(end, file, capacity, role, wait)) return -1;
    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    end->own_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), end->peer_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring_pass_(socket, 1, &other, (int[]){file, end->own_event, end->peer_event}) == 0) return 0;
    int error = errno;
    return ring_close(end), errno = error, -1;
}

/* Opens the end that was offered: its role is in `end`. A file description of its own, through /proc, for a lock of its own. */
static inline int ring_accept(struct ring_end *end, int socket, enum ring_wait wait) {
    int got[3];
    char role, path[32];
    if (ring_pass_(socket, 0, &role, got)) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", got[0]);
    int file = open(path, O_RDWR | O_CLOEXEC), seals = fcntl(got[0], F_GET_SEALS);
    close(got[0]);
    /* Memory that the other process could shorten would be a signal at the next access. */
    int failed = file < 0 ? -1 : seals < 0 || !(seals & F_SEAL_SHRINK) ? ring_fail_(file, EPROTO) : ring_open_file(end, file, 0, role & 1, wait);
    if (failed) return close(got[1]), close(got[2]), -1;
    end->own_event = got[2], end->peer_event = got[1];
    return 0;
}
#endif
