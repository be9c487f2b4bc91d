#include <fcntl.h>
#include <libgen.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
@sender #include <linux/sockios.h>
@sender #include <sys/ioctl.h>

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat found;
    if (strlen(path) >= sizeof address.sun_path) errx(1, "%s: the name of a socket has less than %zu bytes", path, sizeof address.sun_path);
    if (stat(path, &found) == 0 && !S_ISSOCK(found.st_mode)) errx(1, "%s is there already, and is no socket", path);
    strcpy(address.sun_path, path);
    return address;
}
static int new_socket(void) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? err(1, "socket"), fd : fd;
}
@sends /* False: there is no receiver, or it has gone. */
@sends static bool connect_to(int fd, const char *path) {
@sends     struct sockaddr_un address = address_of(path);
@sends     if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return true;
@sends     if (errno != ENOENT && errno != ECONNREFUSED) err(1, "connect %s", path);
@sends     return false;
@sends }
