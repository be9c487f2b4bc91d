/* {title}
   {command}
   Its arguments: COUNT ({what}s, 1 if not given), RATE ({what}s in a second, {rate} if not given, 0 is full speed), and the NAME at which the
   ends meet. {other} is the other end; they start in any order, and where that one dies this one goes on with the next.

   A message is a word of 64 bits, little-endian, again and again: its number (40 bits), and an id of this run of a sender. After the last
   one follows an end mark, a message of bytes 0xFF. Both ends know the size of a message, so no length is sent. */
#define _GNU_SOURCE
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = {bytes}, WORDS = (BYTES + 7) / 8 };
@links enum { LINKS = {receivers} }; /* each receiver has one of its own */
@copied static _Alignas(4096) uint64_t message[WORDS];
static _Alignas(4096) uint64_t mark[WORDS];
@reply static _Alignas(4096) uint64_t answer[WORDS];
static const char *name = "{NAME}";
@binds static const char *bound; /* the name of a socket, removed at the end, and where a signal ends the program */
@binds static void stop(int number) {
@binds     unlink(bound);
@binds     _exit(128 + number);
@binds }

@@both
@@mechanism

static void number_message(char *bytes, uint64_t id, long number) {
    uint64_t word = htole64(number % NUMBERS | id << 40);
    for (int at = 0; at < BYTES / 8 * 8; at += 8) memcpy(bytes + at, &word, 8);
    memcpy(bytes + BYTES / 8 * 8, &word, BYTES % 8);
}
@reply /* A reply that was meant for a client before this one, or for an earlier request that was sent twice. */
@reply static bool is_left_over(void) {
@reply     uint64_t got = le64toh(answer[0]), sent = le64toh(message[0]);
@reply     if (BYTES > 8 && memcmp(answer, (char *)answer + 8, BYTES > 8 ? BYTES - 8 : 0) != 0) return false;
@reply     return BYTES < 8 || got >> 40 != sent >> 40 || got < sent;
@reply }
@onelink static Sender to;
@links static Sender to[LINKS];
@unwatched /* Sleeps until a {what} is due, counted from 0; one that is late begins at once. */
@watched /* Sleeps until a {what} is due, counted from 0; one that is late begins at once. In a long pause it looks whether the other ends are there:
@watched    the first send to one that died may succeed (tcp). */
static void wait_until_due(const struct timespec *began, long number, long rate) {
    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        double left = began->tv_sec - now.tv_sec + (began->tv_nsec - now.tv_nsec) / 1e9 + (double)number / rate;
        if (left <= 0) return;
        usleep((left < 0.25 ? left : 0.25) * 1e6 + 1);
@watched @onelink         if (left > 0.25) reopen_if_gone(&to);
@watched @links         for (int i = 0; left > 0.25 && i < LINKS; i++) reopen_if_gone(&to[i]);
    }
}

int main(int argc, char **argv) {
    char *rest = "";
    long count = 1, rate = {rate};
    if (argc > 1 && ((count = strtol(argv[1], &rest, 10)) < 1 || *rest)) errx(2, "COUNT is a number of at least 1, not %s", argv[1]);
    if (argc > 2 && ((rate = strtol(argv[2], &rest, 10)) < 0 || *rest || rest == argv[2] || rate > 1000000000))
        errx(2, "RATE is a number from 0 to 1000000000, not %s", argv[2]);
    if (argc > 3) name = argv[3];
    uint32_t id;
    if (getrandom(&id, sizeof id, 0) != sizeof id) err(1, "getrandom");
    id = id % 0xFFFFFE + 1; /* 24 bits; not all of them 1, which is an end mark */
    memset(mark, 0xFF, sizeof mark);
    signal(SIGPIPE, SIG_IGN); /* a write to a dead receiver fails instead */

@onelink     open_sender(&to, name);
@links     for (int i = 0; i < LINKS; i++) open_sender(&to[i], link_name(i));
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (long number = 0; number < count; number++) {
        if (rate) wait_until_due(&began, number, rate);
@copied         number_message((char *)message, id, number);
@copied @onelink         send_message(&to, message);
@copied @links @compete         send_message(&to[number % LINKS], message); /* in turn */
@copied @links @broadcast         for (int i = 0; i < LINKS; i++) send_message(&to[i], message);
@inplace @onelink         number_message(reserve_message(&to), id, number);
@inplace @onelink         ring_commit(&to.ring, BYTES);
@inplace @compete         number_message(reserve_message(&to[number % LINKS]), id, number); /* in turn */
@inplace @compete         ring_commit(&to[number % LINKS].ring, BYTES);
@inplace @broadcast         for (int i = 0; i < LINKS; ring_commit(&to[i++].ring, BYTES)) number_message(reserve_message(&to[i]), id, number);
@reply         for (;;) {
@reply             if (!receive_reply(&to, answer)) send_message(&to, message); /* the server has gone: the next one is asked */
@reply             else if (memcmp(answer, message, BYTES) == 0) break;
@reply             else if (!is_left_over()) errx(1, "the reply to message %ld arrived altered", number);
@reply         }
    }
    clock_gettime(CLOCK_MONOTONIC, &ended);
@onelink     finish_sender(&to, mark);
@links     for (int i = 0; i < LINKS; i++) finish_sender(&to[i], mark);
    double ns = (ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec);
    printf("%.1f ns per {what}: %ld of %d bytes, all as sent\n", ns / count, count, BYTES);
    return 0;
}
