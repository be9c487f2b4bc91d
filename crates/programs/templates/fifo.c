#include <fcntl.h>
#include <sys/stat.h>
static int in[2], out[2]; /* what each end reads from, and writes to */
@reply static char back[4096];

static void remove_meeting_place(void) {
    if (made > 0) unlink(name);
@reply     if (made > 1) unlink(back);
}
static void make_fifo(const char *path) {
    if (mkfifo(path, 0600) != 0) err(1, "mkfifo %s", path);
    made++;
}
static void make_meeting_place(void) {
    make_fifo(name);
@reply     snprintf(back, sizeof back, "%s.back", name);
@reply     make_fifo(back);
}
/* open(2) waits for the other end. */
static int open_fifo(const char *path, int how) {
    int fd = open(path, how);
    return fd < 0 ? err(1, "open %s", path), fd : fd;
}
static void open_end(int me) {
@stream     if (me == {FIRST}) out[me] = open_fifo(name, O_WRONLY);
@stream     else in[me] = open_fifo(name, O_RDONLY);
@reply     if (me == {FIRST}) out[me] = open_fifo(name, O_WRONLY), in[me] = open_fifo(back, O_RDONLY);
@reply     else in[me] = open_fifo(name, O_RDONLY), out[me] = open_fifo(back, O_WRONLY);
}
