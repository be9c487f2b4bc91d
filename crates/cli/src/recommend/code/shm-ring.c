#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = {bytes}, SLOTS = 16 };
struct ring { _Atomic unsigned sent, taken; char slots[SLOTS][BYTES]; };

static void wait_while(_Atomic unsigned *word, unsigned value) {
    while (atomic_load(word) == value)
@futex        syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0); /* asleep until it changes */
@spin        ; /* looks again at once, and burns a CPU meanwhile */
}
static void advance(_Atomic unsigned *word) {
    atomic_fetch_add(word, 1);
@futex    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}
static void put(struct ring *ring, const char *message) { /* one sender, one receiver */
    unsigned at = atomic_load(&ring->sent);
    wait_while(&ring->taken, at - SLOTS); /* full */
    memcpy(ring->slots[at % SLOTS], message, BYTES);
    advance(&ring->sent);
}
static void take(struct ring *ring, char *message) {
    unsigned at = atomic_load(&ring->taken);
    wait_while(&ring->sent, at); /* empty */
    memcpy(message, ring->slots[at % SLOTS], BYTES);
    advance(&ring->taken);
}

int main(void) {
    static char sent[BYTES], received[BYTES];
    int fd = shm_open("/hosepipe-example", O_CREAT | O_RDWR, 0600), status; /* both programs know the name */
    if (fd < 0 || ftruncate(fd, sizeof(struct ring))) return perror("shm_open"), 1;
    struct ring *ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) return perror("mmap"), 1;
    memset(sent, 'x', BYTES);
    if (fork() == 0) _exit((take(ring, received), memcmp(sent, received, BYTES)) != 0); /* the receiving program */
    put(ring, sent);
    shm_unlink("/hosepipe-example"); /* it would outlive both */
    return wait(&status) < 0 || status != 0 || puts("received as sent") < 0;
}
