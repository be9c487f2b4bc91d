/* An end for the tests: end ROLE PATH ID STATE COUNT WAIT. A sender sends COUNT numbered messages (0: for ever) of many sizes, alone, in
   batches and in runs, and notes in STATE how many it has published; a receiver checks them and notes how many it has got of each ID. */
#include "../c/ring.h"
#include <stdio.h>
#include <stdlib.h>

static size_t size_of(uint64_t number) { return 8 * (number / 8 % 61 == 5 ? 300 : 1 + number / 8 * 7 % 40); }
static int state;
static void note(uint64_t id, uint64_t count) {
    if (pwrite(state, &count, 8, 8 * id) != 8) exit(3);
}
static void say(const char *line) { puts(line), fflush(stdout); }

static void send_all(struct ring_end *end, uint64_t id, uint64_t count) {
    static uint64_t words[300];
    for (uint64_t number = 0, sent; count == 0 || number < count; number += sent) {
        size_t bytes = size_of(number);
        struct ring_run run;
        void *payload;
        enum ring_result result;
        for (size_t at = 0; at < bytes / 8; at++) words[at] = id << 40 | number;
        do {
            sent = 1;
            if (number % 16 > 7) {
                if ((result = ring_reserve_run(end, bytes, 16 - number % 16, &run)) != RING_OK) continue;
                for (size_t at = 0; at < run.count * bytes / 8; at++)
                    ((uint64_t *)(void *)(run.payload + at / (bytes / 8) * run.stride))[at % (bytes / 8)] = id << 40 | (number + at / (bytes / 8));
                ring_commit_run(end, &run, sent = run.count);
            } else if (number % 4 == 3) result = ring_push(end, words, bytes);
            else if (number % 4 == 2) {
                if ((result = ring_reserve(end, bytes + 100, &payload)) == RING_OK) memcpy(payload, words, bytes), ring_commit(end, bytes);
            } else result = ring_send(end, words, bytes);
        } while (result == RING_ABSENT && (say("absent"), 1));
        if (result != RING_OK) fprintf(stderr, "sender: %d at %ld\n", result, (long)number), exit(1);
        if (number % 16 > 7 || number % 4 != 3) note(id, number + sent);
    }
    ring_publish(end), note(id, count);
    while (ring_finish(end) != RING_OK) {}
    while (!ring_is_drained(end) && ring_peer_is_there(end)) usleep(1000);
}

static void receive_all(struct ring_end *end) {
    static uint64_t got[1 << 16], words[300];
    if (pread(state, got, sizeof got, 0) < 0) exit(3);
    for (int turn = 0, first = 1;; turn++) {
        struct ring_run run = {.payload = (char *)words, .count = 1};
        const void *message;
        enum ring_result result = turn % 3 == 0 ? ring_peek(end, &message, &run.bytes)
                                : turn % 3 == 1 ? ring_receive(end, words, sizeof words, &run.bytes) : ring_peek_run(end, &run);
        if (result == RING_OK && turn % 3 == 0) run.payload = (char *)message;
        if (result == RING_ABSENT) { say("absent"); continue; }
        if (result == RING_ENDED) { say("ended"); return; }
        if (result != RING_OK) fprintf(stderr, "receiver: %d\n", result), exit(1);
        for (size_t at = 0; at < run.count; at++) {
            const char *text = run.payload + at * run.stride;
            uint64_t word = 0;
            memcpy(&word, text, 8); /* it may be at 4 bytes behind a multiple of 8 */
            uint64_t id = word >> 40, number = word & ((1ull << 40) - 1);
            if (run.bytes != size_of(number) || memcmp(text, text + 8, run.bytes - 8))
                fprintf(stderr, "receiver: message %ld of %ld is torn\n", (long)number, (long)id), exit(1);
            if (first && number < got[id] && number + 8 >= got[id]) continue; /* the message or the run that the last one had in hand */
            if (number != got[id]) fprintf(stderr, "receiver: %ld of %ld in place of %ld\n", (long)number, (long)id, (long)got[id]), exit(1);
            note(id, ++got[id]);
            first = 0;
        }
    }
}

int main(int argc, char **argv) {
    struct ring_end end;
    enum ring_role role = argc > 1 && *argv[1] == 's' ? RING_SENDER : RING_RECEIVER;
    if (argc < 7 || (state = open(argv[4], O_RDWR | O_CREAT, 0600)) < 0) return 2;
    if (ring_open(&end, argv[2], 1 << 16, role, atoi(argv[6]))) return perror("end.c: ring_open"), errno == EBUSY ? 4 : 2;
    if (role == RING_SENDER) send_all(&end, strtoul(argv[3], NULL, 10), strtoul(argv[5], NULL, 10));
    else receive_all(&end);
    ring_close(&end);
    return 0;
}
