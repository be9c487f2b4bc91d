#include <fcntl.h>
#include <sys/stat.h>
static int in[2], out[2]; /* what each end reads from, and writes to */
@reply static char back[4096];

static void remove_meeting_place(void) {
    unlink(name);
@reply     unlink(back);
}
static void make_meeting_place(void) {
@reply     snprintf(back, sizeof back, "%s.back", name);
    remove_meeting_place();
    if (mkfifo(name, 0600) != 0) err(1, "mkfifo %s", name);
@reply     if (mkfifo(back, 0600) != 0) err(1, "mkfifo %s", back);
    atexit(remove_meeting_place);
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
