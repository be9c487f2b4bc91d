#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
/* A folder of messages, each a file of its own that is whole and on the disk once it has its name. They stay until they are received,
   also when both programs or the machine have ended meanwhile; so their number is bounded by the disk alone. */
static void path_of(char *path, const char *kind, long number) { snprintf(path, 4096, "%s/%s%ld", name, kind, number); }

static void remove_meeting_place(void) {
    if (made) rmdir(name);
}
static void make_meeting_place(void) {
    if (mkdir(name, 0700) != 0) err(1, "mkdir %s", name);
    made = 1;
}
static int folder;
static void open_end(int me) {
    if (me == {FIRST} && (folder = open(name, O_RDONLY | O_DIRECTORY)) < 0) err(1, "open %s", name);
}
static void send_message(int me, const char *message) {
    static long number;
    char part[4096], whole[4096];
    path_of(part, "part", number), path_of(whole, "message", number), number++;
    int fd = open(part, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0 || write(fd, message, BYTES) != BYTES || fsync(fd) || close(fd)) err(1, "write %s", part);
    if (rename(part, whole) || fsync(folder)) err(1, "rename to %s", whole);
    (void)me;
}
static void receive_message(int me, char *message) {
    static long number;
    char whole[4096];
    int fd;
    path_of(whole, "message", number++);
    while ((fd = open(whole, O_RDONLY)) < 0) /* not there yet: inotify(7) would say when it is */
        errno == ENOENT ? usleep(200) : (err(1, "open %s", whole), 0);
    if (read(fd, message, BYTES) != BYTES || close(fd) || unlink(whole)) err(1, "read %s", whole);
    (void)me;
}
