/* {title}
   {command}
   Its arguments: COUNT (messages to expect, 1 if not given, 0 if not known), and the NAME at which the ends meet. {other} is the other
   end; they start in any order, and where that one dies this one goes on with the next.

   A message is a word of 64 bits, little-endian, again and again: its number (40 bits), and an id of this run of a sender. After the last
   one follows an end mark, a message of bytes 0xFF. Both ends know the size of a message, so no length is sent. This end is done when it
   has the mark of each sender; or COUNT messages, and then none for three seconds: so it takes what senders that died have left. */
#define _GNU_SOURCE
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
@poll #include <poll.h>
@poll #include <sys/socket.h>
@poll @path #include <sys/un.h>
@poll @numbered #include <netinet/in.h>

enum { BYTES = {bytes}, WORDS = (BYTES + 7) / 8 };
@manysenders enum { SENDERS = {senders}, SEEN_MAX = 8 * SENDERS };
@onesender enum { SENDERS = 1, SEEN_MAX = 8 };
@links enum { LINKS = {receivers} }; /* each receiver has one of its own */
#define MARK (BYTES < 8 ? (1ULL << 8 * BYTES % 64) - 1 : ~0ULL)
@copied static _Alignas(4096) uint64_t message[WORDS];
static const char *name = "{NAME}";
static atomic_long received;
static struct timespec began, ended; /* when the first and the last message came */
@binds static const char *bound[2]; /* names of sockets, removed at the end, and where a signal ends the program */
@binds static void remove_bound(void) {
@binds     for (int i = 0; i < 2; i++) if (bound[i]) unlink(bound[i]);
@binds }
@binds static void stop(int number) {
@binds     remove_bound();
@binds     _exit(128 + number);
@binds }

@poll static int ask; /* a socket of another kind: what comes there is a question */
@poll static void answer_question(void) {
@poll     char question[64];
@poll     if (recv(ask, question, sizeof question, MSG_DONTWAIT) >= 0) fprintf(stderr, "%ld messages\n", received);
@poll }
@waits /* Waits for the link and for questions at once, as an event loop does. */
@waits static void wait_readable(int fd) {
@waits     struct pollfd polled[] = {{fd, POLLIN, 0}, {ask, POLLIN, 0}};
@waits     do {
@waits         if (poll(polled, 2, -1) < 0) err(1, "poll");
@waits         if (polled[1].revents) answer_question();
@waits     } while (!polled[0].revents);
@waits }
@poll static void open_ask(const char *link) {
@poll @path     static struct sockaddr_un at = {.sun_family = AF_UNIX};
@poll @path     snprintf(at.sun_path, sizeof at.sun_path, "%s.ask", *link == '/' && !strchr(link + 1, '/') ? link + 1 : link);
@poll @path     unlink(bound[1] = at.sun_path); /* of a receiver that was killed */
@poll @numbered     struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(link) + 1000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
@poll @path     ask = socket(AF_UNIX, SOCK_DGRAM, 0);
@poll @numbered     ask = socket(AF_INET, SOCK_DGRAM, 0);
@poll     if (ask < 0 || bind(ask, (struct sockaddr *)&at, sizeof at)) err(1, "bind %s.ask", link);
@poll }
@@both
@@mechanism

/* The copies of the word are equal, and a sender's numbers follow one another. */
static void check_message(const char *message, uint64_t word) {
    static struct { uint64_t id, due; } seen[SEEN_MAX]; /* of each sender seen lately: the number that is due */
    static int senders;
    uint64_t number = word & NUMBERS, id = BYTES < 8 ? 0 : word >> 40;
    if (memcmp(message, message + 8, BYTES > 8 ? BYTES - 8 : 0) != 0) errx(1, "message %ld arrived torn or altered", received);
@manysenders     if (BYTES < 8) return; /* it does not say whose it is */
    int i = 0;
    while (i < SEEN_MAX && (i >= senders || seen[i].id != id)) i++;
    if (i == SEEN_MAX) {
        i = senders++ % SEEN_MAX, seen[i].id = id;
@onesender         seen[i].due = senders == 1 ? number : 0; /* those before went to a receiver before this one */
@manysenders         seen[i].due = number; /* those before went to a receiver before this one */
    }
    bool is_due = number == seen[i].due || (BYTES < 8 && number == 0); /* or a new sender's first */
@compete     is_due = number >= seen[i].due || BYTES < 8; /* those between go to other receivers */
@reply     is_due = is_due || (number + 1) % NUMBERS == seen[i].due; /* a request that was sent again */
@file @compete     is_due = true; /* also what a receiver had taken that died */
    if (!is_due) errx(1, "message %llu came where %llu was due", (unsigned long long)number, (unsigned long long)seen[i].due);
    seen[i].due = (number + 1) % NUMBERS;
}

static Receiver from;
static void finish(void) {
@binds     remove_bound(); /* before the socket is closed: a name without its socket says that its owner died */
    close_receiver(&from);
    double ns = (ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec);
    printf("%.1f ns per {what}: %ld of %d bytes, all as sent\n", ns / (received ? received : 1), received, BYTES);
    exit(0);
}
/* Ends the program when no message came for three seconds: even of one in a second, or of a sender that starts slowly, there was none. */
static void *watch(void *unused) {
    for (long before = 0; before != received; sleep(3)) before = received;
    finish();
    return unused;
}

int main(int argc, char **argv) {
    char *rest = "";
    long count = 1;
    if (argc > 1 && ((count = strtol(argv[1], &rest, 10)) < 0 || *rest || rest == argv[1]))
        errx(2, "COUNT is a number of at least 0, not %s", argv[1]);
    if (argc > 2) name = argv[argc > 3 ? 3 : 2]; /* the sender's arguments fit, too: its RATE has no meaning here */
    signal(SIGPIPE, SIG_IGN);                    /* a write to a dead sender fails instead */
@binds     signal(SIGINT, stop), signal(SIGTERM, stop);
@onelink     for (int tries = 0; !open_receiver(&from, name); usleep(10000))
@onelink         if (++tries == 100) errx(1, "%s: another receiver is there", name);
@links     for (int tries = 0; !open_receiver(&from, link_name(tries % LINKS)); usleep(10000)) /* the first that is free */
@links         if (++tries == 100) errx(1, "%s: %d other receivers are there", name, LINKS);
@poll     open_ask(from.link);
    for (int marks = 0; marks < SENDERS;) {
@copied         receive_message(&from, (char *)message);
@copied         uint64_t word = le64toh(message[0]);
@inplace         const char *message = peek_message(&from);
@inplace         uint64_t word = 0;
@inplace         memcpy(&word, message, BYTES < 8 ? BYTES : 8), word = le64toh(word);
        if (word == MARK) {
            marks++;
@connected             acknowledge_end(&from);
            continue;
        }
        if (received == 0) clock_gettime(CLOCK_MONOTONIC, &began);
        check_message((const char *)message, word);
@reply         send_reply(&from, (char *)message);
        if (++received == count) {
            pthread_t watcher;
            clock_gettime(CLOCK_MONOTONIC, &ended);
            if (pthread_create(&watcher, NULL, watch, NULL) != 0) errx(1, "no thread");
        }
    }
    if (received != count) clock_gettime(CLOCK_MONOTONIC, &ended);
    finish();
}
