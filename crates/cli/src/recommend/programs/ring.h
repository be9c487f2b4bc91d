/* ring.h: messages through shared memory, from one sender to one receiver (threads or processes).
   Copy it: MIT or Apache-2.0, as hosepipe is. Define RING_BYTES (most bytes of a message) and RING_SLOTS (messages in flight: a power
   of two, at least 8) before including it; the receiver must know each message's length. Zeroed memory is an empty ring.
   No system call while both ends keep up: an end that must wait polls for some microseconds, then sleeps in futex(2) until it is
   woken; with RING_SPIN it never sleeps. A ring has no end of stream, does not notice a dead peer, and cannot be polled. */
#ifndef RING_H
#define RING_H
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RING_LINE = 128, RING_POLLS = 100 }; /* CPUs fetch cache lines in pairs */

struct ring {
    _Alignas(RING_LINE) _Atomic uint32_t sent;  /* messages, written by the sender only */
    _Alignas(RING_LINE) _Atomic uint32_t taken; /* written by the receiver only */
    _Alignas(RING_LINE) _Atomic uint32_t sender_sleeps, receiver_sleeps;
    _Alignas(RING_LINE) struct { _Alignas(64) char bytes[RING_BYTES]; } slots[RING_SLOTS];
};

/* What an end knows without a look at the other end's cache line. */
struct ring_end { struct ring *ring; uint32_t own, other, published; };

static inline void ring_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Returns the counter once it is not `old`. The fence pairs with that of ring_publish: either this end sees the new count, or the
   other end sees the flag. */
static inline uint32_t ring_wait(_Atomic uint32_t *counter, uint32_t old, _Atomic uint32_t *sleeps) {
    for (;;) {
        for (int poll = 0; poll < RING_POLLS; poll++) {
            uint32_t now = atomic_load_explicit(counter, memory_order_acquire);
            if (now != old) return now;
            ring_pause();
        }
#ifndef RING_SPIN
        atomic_store_explicit(sleeps, 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(counter, memory_order_relaxed) == old)
            syscall(SYS_futex, sleeps, FUTEX_WAIT, 1, NULL, NULL, 0);
        atomic_store_explicit(sleeps, 0, memory_order_relaxed);
#else
        (void)sleeps;
#endif
    }
}

static inline void ring_publish(_Atomic uint32_t *counter, uint32_t value, _Atomic uint32_t *sleeps) {
    atomic_store_explicit(counter, value, memory_order_release);
#ifndef RING_SPIN
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(sleeps, memory_order_relaxed) && atomic_exchange_explicit(sleeps, 0, memory_order_relaxed))
        syscall(SYS_futex, sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
#else
    (void)sleeps;
#endif
}

static inline void ring_send(struct ring_end *end, const void *message, size_t bytes) {
    struct ring *ring = end->ring;
    while (end->own - end->other == RING_SLOTS) /* full, as far as known */
        end->other = ring_wait(&ring->taken, end->other, &ring->sender_sleeps);
    memcpy(ring->slots[end->own % RING_SLOTS].bytes, message, bytes);
    ring_publish(&ring->sent, ++end->own, &ring->receiver_sleeps);
}

/* Room is given back an eighth of the ring at a time, which keeps the counter's cache line with the sender. */
static inline void ring_receive(struct ring_end *end, void *message, size_t bytes) {
    struct ring *ring = end->ring;
    while (end->own == end->other) /* empty, as far as known */
        end->other = ring_wait(&ring->sent, end->other, &ring->receiver_sleeps);
    memcpy(message, ring->slots[end->own++ % RING_SLOTS].bytes, bytes);
    if (end->own - end->published >= RING_SLOTS / 8)
        ring_publish(&ring->taken, end->published = end->own, &ring->sender_sleeps);
}
#endif
