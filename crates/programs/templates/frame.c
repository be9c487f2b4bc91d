/* {title}
   cc -O2 -pthread -o example example.c -lrt && ./example {count}
   Its arguments: COUNT (1 if not given){rate_argument}, and a NAME at which the ends meet. */
#define _GNU_SOURCE
#include <err.h>
@paced #include <errno.h>
@named #include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
@threads #include <pthread.h>
@fork #include <signal.h>
@fork #include <sys/prctl.h>
@fork #include <sys/wait.h>

enum { BYTES = {bytes} };
enum { {FIRST}, {SECOND} };
/* On a cache line of its own, and at the start of a page if large: a copy to 1 to 31 bytes into a page may take twice as long. */
static struct { _Alignas({align}) char sent[BYTES]; _Alignas({align}) char received[BYTES]; } ends[2];
static long count = 1;
@paced static long rate = {rate}; /* {what}s in a second */
static const char *name = "{NAME}";
static struct timespec began, ended;
@named static int made; /* names that this program made, and removes: what was there before is not its own */

@@family

/* A message is its number and bytes of 'x'. */
static void number_message(int me, long number) {
    memcpy(ends[me].sent, &number, BYTES < sizeof number ? BYTES : sizeof number);
}
static void check_message(int me, long number) {
    if (memcmp(ends[me].received, ends[me].sent, BYTES) != 0) errx(1, "message %ld arrived altered", number);
}

@paced /* Sleeps until a {what} is due, counted from 0; one that is late begins at once. */
@paced static void wait_until_due(long number) {
@paced     long long ns = began.tv_nsec + number % rate * 1000000000LL / rate;
@paced     struct timespec now, due = {began.tv_sec + number / rate + ns / 1000000000, ns % 1000000000};
@paced     clock_gettime(CLOCK_MONOTONIC, &now);
@paced     if (now.tv_sec > due.tv_sec || (now.tv_sec == due.tv_sec && now.tv_nsec >= due.tv_nsec)) return; /* else a timer is set all the same */
@paced     while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {}
@paced }
static void *run_{first}(void *unused) {
    open_end({FIRST});
    memset(ends[{FIRST}].sent, 'x', BYTES);
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (long number = 0; number < count; number++) {
@paced         wait_until_due(number);
        number_message({FIRST}, number);
        send_message({FIRST}, ends[{FIRST}].sent);
@reply         receive_message({FIRST}, ends[{FIRST}].received);
@reply         check_message({FIRST}, number);
    }
    return unused;
}
static void *run_{second}(void *unused) {
    open_end({SECOND});
    memset(ends[{SECOND}].sent, 'x', BYTES);
    for (long number = 0; number < count; number++) {
        receive_message({SECOND}, ends[{SECOND}].received);
        number_message({SECOND}, number);
        check_message({SECOND}, number);
@reply         send_message({SECOND}, ends[{SECOND}].sent);
    }
    return unused;
}

@named static void stop(int number) { remove_meeting_place(), _exit(128 + number); }
int main(int argc, char **argv) {
    char *rest = "";
    if (argc > 1 && ((count = strtol(argv[1], &rest, 10)) < 1 || *rest)) errx(2, "COUNT is a number of at least 1, not %s", argv[1]);
@paced     if (argc > 2 && ((rate = strtol(argv[2], &rest, 10)) < 1 || *rest || rate > 1000000000))
@paced         errx(2, "RATE is a number from 1 to 1000000000, not %s", argv[2]);
    if (argc > {name_at}) name = argv[{name_at}];
@named     atexit(remove_meeting_place), signal(SIGINT, stop), signal(SIGTERM, stop);
    make_meeting_place();
@fork     int status;
@fork     pid_t {second} = fork();
@fork     if ({second} < 0) err(1, "fork");
@fork     if ({second} == 0) prctl(PR_SET_PDEATHSIG, SIGKILL); /* where its parent dies it ends */
@fork @named     if ({second} == 0) made = 0; /* its parent removes them */
@fork     if ({second} == 0) run_{second}(NULL), _exit(0); /* {second_end} */
@fork     run_{first}(NULL);
@fork     if (waitpid({second}, &status, 0) < 0 || status != 0) errx(1, "the {second} failed");
@threads     pthread_t {second};
@threads     if (pthread_create(&{second}, NULL, run_{second}, NULL) != 0) errx(1, "no thread");
@threads     run_{first}(NULL);
@threads     pthread_join({second}, NULL);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    double ns = (ended.tv_sec - began.tv_sec) * 1e9 + (ended.tv_nsec - began.tv_nsec);
    printf("%.1f ns per {what}: %ld of %d bytes, all as sent\n", ns / count, count, BYTES);
    return 0;
}
