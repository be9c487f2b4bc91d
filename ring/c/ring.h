/* ring.h: whole messages through shared memory, from one sender to one receiver (processes, containers or threads).
   Copy it: MIT or Apache-2.0, as hosepipe is. C11 (gcc, clang), Linux, no library. The bytes in memory are described in LAYOUT.md, the
   same words in Rust and Python beside this folder.

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
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif

enum ring_role { RING_SENDER, RING_RECEIVER };
/* What an end does that must wait: reads the word again and again; sleeps in futex(2); sleeps in poll(2) (an eventfd, for rings of
   ring_offer and ring_accept); or returns RING_AGAIN. */
enum ring_wait { RING_SPIN, RING_FUTEX, RING_EVENTFD, RING_NOWAIT };
/* RING_ENDED: the sender has finished. RING_ABSENT: this end waits, and the other one is not there; call again to go on waiting. */
enum ring_result { RING_OK, RING_ENDED, RING_ABSENT, RING_AGAIN, RING_DAMAGED, RING_TOO_LARGE };

enum {
    RING_MAGIC = 0x676e6972, /* "ring" */
    RING_VERSION = 1,
    RING_HEAD_BYTES = 4096,
    RING_LINE = 128,           /* CPUs fetch cache lines in pairs */
    RING_ALIGN_FROM = 1024,    /* messages of at least so many bytes begin at a multiple of 64 */
    RING_PAUSES = 256,         /* most that a receiver waits for a stream to run ahead: two microseconds or so */
    RING_POLLS = 100,          /* looks before a sleep: some microseconds */
    RING_SPIN_POLLS = 1 << 16, /* looks before a spinning end asks whether the other one is there: some milliseconds */
    RING_SLEEP_MS = 250        /* a sleeping end asks as often */
};
#define RING_SKIP UINT32_MAX      /* in place of a length: go on at the first byte */
#define RING_END (UINT32_MAX - 1) /* in place of a length: the sender has finished */
#define RING_ALIGNED (1u << 31)   /* beside a length: the message begins at the next multiple of 64, and not right behind */

/* How an end sleeps: 0 (it does not), 1 (futex), 2 (eventfd); and whether it lacks membarrier(2), so that the other end needs a fence. */
struct ring_sleeper {
    _Alignas(RING_LINE) _Atomic uint32_t sleeps;
    _Atomic uint32_t needs_fence;
};

struct ring_head {
    _Atomic uint32_t magic; /* written last */
    uint32_t version, head_bytes, capacity;
    _Alignas(RING_LINE) _Atomic uint32_t written; /* positions count bytes, without end: the sender has published so many, */
    _Alignas(RING_LINE) _Atomic uint32_t room;    /* the receiver has given back so many, */
    _Alignas(RING_LINE) _Atomic uint32_t taken;   /* and has done with so many */
    struct ring_sleeper sleepers[2];              /* of the sender, of the receiver */
};
_Static_assert(offsetof(struct ring_head, written) == 128 && offsetof(struct ring_head, room) == 256 &&
               offsetof(struct ring_head, taken) == 384 && offsetof(struct ring_head, sleepers) == 512 &&
               offsetof(struct ring_sleeper, needs_fence) == 4 && sizeof(struct ring_sleeper) == RING_LINE, "LAYOUT.md");

/* One end, of one thread at a time. A child that forks keeps the parent's end alive until it executes another program or closes `file`. */
struct ring_end {
    struct ring_head *head;
    char *bytes;
    uint32_t capacity;
    uint32_t own;   /* where the next record begins */
    uint32_t seen;  /* the other end's position, as last read */
    uint32_t given; /* own position, as the other end can read it */
    uint32_t held;  /* bytes of the record that was reserved (up to its payload), or peeked at (all) */
    uint32_t streak; /* messages since the receiver had to wait */
    enum ring_role role;
    enum ring_wait wait;
    int has_membarrier;
    int file;                 /* holds the lock of its role; -1: memory of one process */
    int own_event, peer_event; /* eventfds, or -1 */
};

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

/* The word that the other end writes. */
static inline _Atomic uint32_t *ring_peer_word_(const struct ring_end *end) {
    return end->role == RING_SENDER ? &end->head->room : &end->head->written;
}

static inline void ring_wake_(struct ring_end *end, struct ring_sleeper *peer) {
    uint32_t sleeps = atomic_exchange_explicit(&peer->sleeps, 0, memory_order_relaxed);
    if (sleeps == 1) syscall(SYS_futex, &peer->sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
    if (sleeps == 2 && end->peer_event >= 0 && write(end->peer_event, &(uint64_t){1}, 8) < 0) {} /* full: it is awake */
}

/* Either this end sees that the other one sleeps, or that one sees the new value: its membarrier(2) is a fence here as well. */
static inline void ring_tell_(struct ring_end *end, _Atomic uint32_t *word, uint32_t value) {
    struct ring_sleeper *peer = &end->head->sleepers[!end->role];
    end->given = value;
    atomic_store_explicit(word, value, memory_order_release);
    if (!end->has_membarrier || atomic_load_explicit(&peer->needs_fence, memory_order_relaxed))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&peer->sleeps, memory_order_relaxed)) ring_wake_(end, peer);
}

/* Says that this end sleeps; false if the word has changed, and it must not sleep. */
static inline int ring_announce_sleep_(struct ring_end *end, uint32_t how) {
    struct ring_sleeper *own = &end->head->sleepers[end->role];
    atomic_store_explicit(&own->sleeps, how, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (end->has_membarrier) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    return atomic_load_explicit(ring_peer_word_(end), memory_order_relaxed) == end->seen;
}

/* Before a poll(2) that includes ring_event(): true if there is nothing to do, and the poll may sleep. */
static inline int ring_arm(struct ring_end *end) {
    if (end->role == RING_RECEIVER && end->own + end->held != end->seen) return 0;
    return ring_announce_sleep_(end, 2);
}
/* The descriptor to poll for POLLIN; each wake-up needs one read(2) of 8 bytes. */
static inline int ring_event(const struct ring_end *end) { return end->own_event; }

static inline void ring_sleep_(struct ring_end *end) {
    struct ring_sleeper *own = &end->head->sleepers[end->role];
    struct { long s, ns; } limit = {0, RING_SLEEP_MS * 1000000L};
    int by_event = end->wait == RING_EVENTFD && end->own_event >= 0;
    uint64_t count;
    if (ring_announce_sleep_(end, by_event ? 2 : 1)) {
        if (!by_event) syscall(SYS_futex, &own->sleeps, FUTEX_WAIT, 1, &limit, NULL, 0);
        else if (poll(&(struct pollfd){.fd = end->own_event, .events = POLLIN}, 1, RING_SLEEP_MS) > 0 &&
                 read(end->own_event, &count, 8) < 0) {} /* another thread was faster: looks again */
    }
    atomic_store_explicit(&own->sleeps, 0, memory_order_relaxed);
}

/* Waits until the other end's word differs from `seen`, and reads it. */
static enum ring_result ring_wait_(struct ring_end *end) {
    _Atomic uint32_t *word = ring_peer_word_(end);
    for (int asked = 0;;) {
        int polls = end->wait == RING_NOWAIT ? 1 : end->wait == RING_SPIN ? RING_SPIN_POLLS : RING_POLLS;
        for (; polls > 0; polls--) {
            uint32_t now = atomic_load_explicit(word, memory_order_acquire);
            if (now != end->seen) {
                /* The sender's bytes between the two positions, or the receiver's. */
                uint32_t used = end->role == RING_SENDER ? end->own - now : now - end->own;
                if (used > end->capacity || now % 8 != 0) return RING_DAMAGED;
                end->seen = now;
                return RING_OK;
            }
            ring_pause_();
        }
        if (end->wait == RING_NOWAIT) return RING_AGAIN;
        if (asked) return RING_ABSENT;
        if (end->wait != RING_SPIN) ring_sleep_(end);
        if (atomic_load_explicit(word, memory_order_relaxed) != end->seen || ring_peer_is_there(end)) continue;
        /* It may have published before it died: one more look. */
        asked = 1;
        if (end->wait == RING_SPIN) poll(NULL, 0, 1); /* none is there whose answer could be late */
    }
}

/* ---- The sender ---- */

/* Makes all records before `own` visible. */
static inline void ring_publish(struct ring_end *end) {
    if (end->given != end->own) ring_tell_(end, &end->head->written, end->own);
}

static inline uint32_t ring_start_(uint32_t at, uint32_t bytes) {
    return bytes < RING_ALIGN_FROM ? 4 : (at + 4 + 63) / 64 * 64 - at;
}
static inline void ring_mark_(struct ring_end *end, uint32_t word) {
    memcpy(end->bytes + (end->own & (end->capacity - 1)), &word, sizeof word);
}

static enum ring_result ring_wait_for_room_(struct ring_end *end, uint32_t bytes) {
    while (end->own + bytes - end->seen > end->capacity) {
        ring_publish(end); /* the receiver must take what is there */
        enum ring_result result = ring_wait_(end);
        if (result != RING_OK) return result;
    }
    return RING_OK;
}

/* A record is in one piece: one that does not fit before the end of the bytes begins at the first byte. */
static enum ring_result ring_skip_(struct ring_end *end, uint32_t left) {
    enum ring_result result = ring_wait_for_room_(end, left);
    if (result != RING_OK) return result;
    ring_mark_(end, RING_SKIP);
    end->own += left;
    return RING_OK;
}

/* Room for a message of up to `bytes`, to be written in place; waits until there is. */
static inline enum ring_result ring_reserve(struct ring_end *end, size_t bytes, void **payload) {
    if (bytes > end->capacity - 64) return RING_TOO_LARGE;
    uint32_t at = end->own & (end->capacity - 1), start = ring_start_(at, bytes);
    if (at + start + bytes > end->capacity) {
        enum ring_result result = ring_skip_(end, end->capacity - at);
        if (result != RING_OK) return result;
        at = 0, start = ring_start_(0, bytes);
    }
    uint32_t whole = (start + (uint32_t)bytes + 7) & ~7u;
    if (end->own + whole - end->seen > end->capacity) {
        enum ring_result result = ring_wait_for_room_(end, whole);
        if (result != RING_OK) return result;
    }
    end->held = start;
    *payload = end->bytes + at + start;
    return RING_OK;
}

/* The reserved message is written, and this long (at most as reserved); visible after ring_publish. */
static inline void ring_stage(struct ring_end *end, size_t bytes) {
    ring_mark_(end, (uint32_t)bytes | (end->held > 4 ? RING_ALIGNED : 0));
    end->own += (end->held + (uint32_t)bytes + 7) & ~7u;
}
/* The same, visible at once. */
static inline void ring_commit(struct ring_end *end, size_t bytes) { ring_stage(end, bytes), ring_publish(end); }

/* Copies a message into the ring. A batch: several of these, then one ring_publish. */
static inline enum ring_result ring_push(struct ring_end *end, const void *message, size_t bytes) {
    void *payload;
    enum ring_result result = ring_reserve(end, bytes, &payload);
    if (result != RING_OK) return result;
    memcpy(payload, message, bytes);
    ring_stage(end, bytes);
    return RING_OK;
}
static inline enum ring_result ring_send(struct ring_end *end, const void *message, size_t bytes) {
    enum ring_result result = ring_push(end, message, bytes);
    ring_publish(end);
    return result;
}

/* After its last message: the receiver gets RING_ENDED after all messages before. */
static inline enum ring_result ring_finish(struct ring_end *end) {
    enum ring_result result = ring_wait_for_room_(end, 8);
    if (result != RING_OK) return result;
    ring_mark_(end, RING_END);
    end->own += 8;
    ring_publish(end);
    return RING_OK;
}

/* Whether the receiver has done with all that was published. */
static inline int ring_is_drained(const struct ring_end *end) {
    return atomic_load_explicit(&end->head->taken, memory_order_acquire) == end->given;
}

/* ---- The receiver ---- */

/* The message in hand is done with: a receiver that is killed after this does not get it again. Asking for the next one does the same.
   Room is given back an eighth of the ring at a time, which keeps the word's cache line with the sender. */
static inline void ring_release(struct ring_end *end) {
    if (end->held == 0) return;
    end->own += end->held, end->held = 0, end->streak++;
    atomic_store_explicit(&end->head->taken, end->own, memory_order_release);
    if (end->own - end->given >= end->capacity / 8) ring_tell_(end, &end->head->room, end->own);
}

/* Whether nothing was published after the message in hand. */
static inline int ring_is_last(const struct ring_end *end) {
    return atomic_load_explicit(&end->head->written, memory_order_acquire) == end->own + end->held;
}

/* Nothing is left. The sender may wait for more than an eighth; and in a stream, which is faster if the two ends are not at the same cache
   line, this end looks away as many times as it had messages. */
static void ring_catch_up_(struct ring_end *end) {
    if (end->given != end->own) ring_tell_(end, &end->head->room, end->own);
    for (uint32_t pause = 1; pause < end->streak && pause < RING_PAUSES; pause++) ring_pause_();
    end->streak = 0;
}

/* A message in place, valid until the next call; waits until there is one. */
static inline enum ring_result ring_peek(struct ring_end *end, const void **payload, size_t *bytes) {
    ring_release(end);
    for (;;) {
        if (end->own == end->seen) {
            uint32_t now = atomic_load_explicit(&end->head->written, memory_order_acquire);
            if (now == end->own) ring_catch_up_(end);
            enum ring_result result = ring_wait_(end);
            if (result != RING_OK) return result;
        }
        uint32_t at = end->own & (end->capacity - 1), left = end->capacity - at;
        /* Read once: the other process could change it after it was checked. */
        uint32_t word = *(volatile uint32_t *)(end->bytes + at), length = word & ~RING_ALIGNED;
        uint32_t start = word & RING_ALIGNED ? (at + 4 + 63) / 64 * 64 - at : 4;
        if (left > end->seen - end->own) left = end->seen - end->own;
        if (word < RING_END && start <= left && length <= left - start) {
            end->held = (start + length + 7) & ~7u;
            *payload = end->bytes + at + start, *bytes = length;
            return RING_OK;
        }
        if (word != RING_END && (word != RING_SKIP || left != end->capacity - at)) return RING_DAMAGED;
        end->held = word == RING_END ? 8 : left;
        if (word == RING_END) return RING_ENDED;
        ring_release(end);
    }
}

/* Copies a message. RING_TOO_LARGE: it has more than `room` bytes, `*bytes`, and stays. */
static inline enum ring_result ring_receive(struct ring_end *end, void *message, size_t room, size_t *bytes) {
    const void *payload;
    enum ring_result result = ring_peek(end, &payload, bytes);
    if (result != RING_OK) return result;
    if (*bytes > room) return end->held = 0, RING_TOO_LARGE;
    memcpy(message, payload, *bytes);
    return RING_OK;
}

/* ---- Both: open and close ---- */

/* An end of a ring in memory of this program (RING_HEAD_BYTES + capacity, aligned to 128, zeroed before the first end): it goes on from
   the words there. -1: they make no sense. */
static inline int ring_attach(struct ring_end *end, void *memory, uint32_t capacity, enum ring_role role, enum ring_wait wait) {
    struct ring_head *head = memory;
    *end = (struct ring_end){.head = head, .bytes = (char *)memory + RING_HEAD_BYTES, .capacity = capacity, .role = role, .wait = wait,
                             .file = -1, .own_event = -1, .peer_event = -1};
    end->has_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    atomic_store(&head->sleepers[role].needs_fence, !end->has_membarrier);
    atomic_store(&head->sleepers[role].sleeps, 0);
    uint32_t written = atomic_load(&head->written), room = atomic_load(&head->room), taken = atomic_load(&head->taken);
    end->own = role == RING_SENDER ? written : taken;
    end->given = role == RING_SENDER ? written : room;
    end->seen = role == RING_SENDER ? room : taken;
    uint32_t used = role == RING_SENDER ? written - room : written - taken;
    return (end->own | end->given | end->seen) % 8 || used > capacity || end->own - end->given > capacity ? -1 : 0;
}

static inline int ring_fail_(int file, int error) { return close(file), errno = error, -1; }

/* An end of the ring in a file, which it then owns. The capacity (a power of two, 4096 to 2^30) counts for a new ring only. 0; or -1 and
   errno: EBUSY (such an end is alive), EINVAL (no such capacity), EPROTO (the file is no ring of this version). */
static inline int ring_open_file(struct ring_end *end, int file, uint32_t capacity, enum ring_role role, enum ring_wait wait) {
    struct stat stat;
    uint32_t words[4] = {0};
    if (ring_lock_(file, F_OFD_SETLK, role, F_WRLCK) < 0) return ring_fail_(file, errno == EAGAIN || errno == EACCES ? EBUSY : errno);
    /* The setup is repeated by the next end if this one dies in it. */
    if (ring_lock_(file, F_OFD_SETLKW, 2, F_WRLCK) < 0 || fstat(file, &stat)) return ring_fail_(file, errno);
    if (!S_ISREG(stat.st_mode) || pread(file, words, sizeof words, 0) < 0) return ring_fail_(file, EPROTO);
    int is_new = words[0] == 0;
    if (is_new && (capacity < 4096 || capacity > 1 << 30 || (capacity & (capacity - 1)))) return ring_fail_(file, EINVAL);
    if (!is_new) capacity = words[3];
    off_t whole = (off_t)RING_HEAD_BYTES + capacity;
    if (is_new ? stat.st_size > whole || words[1] > RING_VERSION || words[2] > RING_HEAD_BYTES
               : words[0] != RING_MAGIC || words[1] != RING_VERSION || words[2] != RING_HEAD_BYTES || stat.st_size < whole ||
                     capacity < 4096 || capacity > 1 << 30 || (capacity & (capacity - 1)))
        return ring_fail_(file, EPROTO);
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
        /* It was removed before this end had its lock. */
        munmap(end->head, RING_HEAD_BYTES + (size_t)end->capacity), close(file);
    }
}

/* Lets go of the ring, and of the message in hand. The file stays. */
static inline void ring_close(struct ring_end *end) {
    if (end->role == RING_SENDER) ring_publish(end);
    else if (ring_release(end), end->given != end->own) ring_tell_(end, &end->head->room, end->own);
    if (end->file < 0) return;
    munmap(end->head, RING_HEAD_BYTES + (size_t)end->capacity);
    close(end->file);
    if (end->own_event >= 0) close(end->own_event), close(end->peer_event);
}

/* ---- A ring without a name, over a connected Unix socket: a memfd and two eventfds. The socket's end of file also tells of a death. ---- */

struct ring_passed_ { struct msghdr header; struct iovec text; char role; union { struct cmsghdr start; char bytes[CMSG_SPACE(3 * sizeof(int))]; } control; };
static inline struct msghdr *ring_message_(struct ring_passed_ *passed) {
    passed->text = (struct iovec){&passed->role, 1};
    passed->header = (struct msghdr){.msg_iov = &passed->text, .msg_iovlen = 1, .msg_control = &passed->control,
                                     .msg_controllen = sizeof passed->control};
    return &passed->header;
}

/* Makes a ring, opens this end of it and sends the other one. 0, or -1 and errno. */
static inline int ring_offer(struct ring_end *end, int socket, uint32_t capacity, enum ring_role role, enum ring_wait wait) {
    int file = syscall(SYS_memfd_create, "ring", 3 /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);
    if (file < 0 || ring_open_file(end, file, capacity, role, wait)) return -1;
    fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    int sent[3] = {file, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    end->own_event = sent[1], end->peer_event = sent[2];
    struct ring_passed_ passed = {.role = (char)!role};
    struct msghdr *message = ring_message_(&passed);
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    control->cmsg_level = SOL_SOCKET, control->cmsg_type = SCM_RIGHTS, control->cmsg_len = CMSG_LEN(sizeof sent);
    memcpy(CMSG_DATA(control), sent, sizeof sent);
    if (sendmsg(socket, message, MSG_NOSIGNAL) == 1) return 0;
    int error = errno;
    return ring_close(end), errno = error, -1;
}

/* Opens the end that was offered: its role is in `end`. A file description of its own, through /proc, for a lock of its own. */
static inline int ring_accept(struct ring_end *end, int socket, enum ring_wait wait) {
    int got[3];
    struct ring_passed_ passed;
    struct msghdr *message = ring_message_(&passed);
    ssize_t length = recvmsg(socket, message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    if (length != 1 || !control || control->cmsg_type != SCM_RIGHTS || control->cmsg_len != CMSG_LEN(sizeof got))
        return errno = length < 0 ? errno : EPROTO, -1;
    memcpy(got, CMSG_DATA(control), sizeof got);
    char path[40] = "/proc/self/fd/", digits[12];
    int at = 0, seals = fcntl(got[0], F_GET_SEALS);
    for (int rest = got[0]; at == 0 || rest > 0; rest /= 10) digits[at++] = '0' + rest % 10;
    for (size_t to = strlen(path); at > 0; to++) path[to] = digits[--at];
    int file = open(path, O_RDWR | O_CLOEXEC);
    close(got[0]);
    /* Memory that the other process could shorten would be a signal at the next access. */
    int failed = file < 0 ? -1 : seals < 0 || !(seals & F_SEAL_SHRINK) ? ring_fail_(file, EPROTO) : ring_open_file(end, file, 0, passed.role & 1, wait);
    if (failed) return close(got[1]), close(got[2]), -1;
    end->own_event = got[2], end->peer_event = got[1];
    return 0;
}
#endif
