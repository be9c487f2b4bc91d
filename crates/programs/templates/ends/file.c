#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
@sends #include <sys/random.h>
@receives #include <sys/file.h>
@sender @broadcast #include <sys/file.h>

/* A folder of messages, each a file of its own that is whole and on the disk once it has its name. They stay until they are received,
   also when both programs or the machine have ended meanwhile; so their number is bounded by the disk alone. */
typedef struct {
    const char *path;
    int fd;
@sends     long long number; /* of the next message: files are taken in the order of their names */
@sends     unsigned id;
@receives     struct dirent **entries; /* the messages that were there, oldest first */
@receives     int at, found, taken;    /* the one that is looked at; how many; the descriptor of the one that was received last */
} Folder;
static int is_message(const struct dirent *entry) { return strncmp(entry->d_name, "message.", 8) == 0; }
@empties static int is_part(const struct dirent *entry) { return strncmp(entry->d_name, "part.", 5) == 0; }
static int list(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *)) {
    int found = scandir(path, entries, filter, alphasort);
    return found < 0 && errno != ENOENT ? err(1, "%s", path), 0 : found < 0 ? 0 : found;
}
/* Either end makes it. */
static Folder open_folder(const char *path) {
    if (mkdir(path, 0700) != 0 && errno != EEXIST) err(1, "mkdir %s", path);
    Folder folder = {.path = path, .fd = open(path, O_RDONLY | O_DIRECTORY)};
    if (folder.fd < 0) err(1, "open %s", path);
@sends     int parent = openat(folder.fd, "..", O_RDONLY | O_DIRECTORY); /* the name of the folder itself has to be on the disk, too */
@sends     if (parent < 0 || fsync(parent) || close(parent)) err(1, "fsync %s/..", path);
@sends     struct dirent **entries;
@sends     for (int i = 0, found = list(path, &entries, is_message); i < found; i++) folder.number = atoll(entries[i]->d_name + 8) + 1;
@sends     if (getrandom(&folder.id, sizeof folder.id, 0) < 0) err(1, "getrandom");
@receives     folder.taken = -1;
    return folder;
}
@empties static void remove_all(const char *path, int (*filter)(const struct dirent *)) {
@empties     struct dirent **entries;
@empties     char file[4096];
@empties     for (int i = list(path, &entries, filter); i-- > 0;) snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name), unlink(file);
@empties }
@sends static void put(Folder *folder, const void *message) {
@sends     char part[64], whole[64];
@sends     for (;;) {
@sends         snprintf(part, sizeof part, "part.%08x", folder->id);
@sends @manysenders         struct timespec now;
@sends @manysenders         clock_gettime(CLOCK_REALTIME, &now); /* senders have no common count */
@sends @manysenders         long long ns = now.tv_sec * 1000000000LL + now.tv_nsec;
@sends @manysenders         if (folder->number < ns) folder->number = ns;
@sends         snprintf(whole, sizeof whole, "message.%020lld.%08x", folder->number, folder->id);
@sends         int fd = openat(folder->fd, part, O_CREAT | O_TRUNC | O_WRONLY, 0600);
@sends         if (fd >= 0 && (write(fd, message, BYTES) != BYTES || fsync(fd) || close(fd))) err(1, "write %s/%s", folder->path, part);
@sends         if (fd >= 0 && renameat(folder->fd, part, folder->fd, whole) == 0 && fsync(folder->fd) == 0) break;
@sends         if (errno != ENOENT) err(1, "%s/%s", folder->path, part);
@sends         close(folder->fd), *folder = open_folder(folder->path); /* a receiver that was done has removed the folder */
@sends     }
@sends     folder->number++;
@sends }
@receives /* The message that was received last is dealt with: until here it would be received again after a crash. */
@receives static void drop_taken(Folder *folder) {
@receives     if (folder->taken < 0) return;
@receives     unlinkat(folder->fd, folder->entries[folder->at]->d_name, 0);
@receives     close(folder->taken), folder->taken = -1;
@receives     free(folder->entries[folder->at++]);
@receives }
@receives /* A list that is made while messages come may have a later one and not an earlier one: the second has all before the last of the first. */
@receives static void look(Folder *folder) {
@receives     struct dirent **first, **entries = NULL;
@receives     int last = list(folder->path, &first, is_message) - 1, found = last < 0 ? 0 : list(folder->path, &entries, is_message);
@receives     while (found > 0 && strcmp(entries[found - 1]->d_name, first[last]->d_name) > 0) free(entries[--found]);
@receives     if (last >= 0) {
@receives         do free(first[last]); while (last-- > 0);
@receives         free(first);
@receives     }
@receives     free(folder->entries);
@receives     folder->entries = entries, folder->at = 0, folder->found = found;
@receives }
@receives static void get(Folder *folder, void *message) {
@receives     struct stat facts;
@receives     for (drop_taken(folder);; free(folder->entries[folder->at++])) {
@receives         while (folder->at == folder->found) {
@receives             look(folder);
@receives             if (folder->found == 0) usleep(200); /* inotify(7) would say when there is one */
@receives         }
@receives         int fd = openat(folder->fd, folder->entries[folder->at]->d_name, O_RDONLY);
@receives         /* One that another receiver has locked is dealt with there; if that one dies, the lock is free. */
@receives         if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &facts) == 0 && facts.st_nlink > 0) {
@receives             if (read(fd, message, BYTES) != BYTES || facts.st_size != BYTES)
@receives                 errx(1, "%s/%s has %lld bytes", folder->path, folder->entries[folder->at]->d_name, (long long)facts.st_size);
@receives             folder->taken = fd;
@receives             return;
@receives         }
@receives         if (fd >= 0) close(fd);
@receives     }
@receives }

@sender typedef struct {
@sender     Folder folder;
@sender } Sender;
@sender static void open_sender(Sender *to, const char *link) {
@sender     to->folder = open_folder(link);
@sender @broadcast     for (; flock(to->folder.fd, LOCK_SH | LOCK_NB) == 0; usleep(10000)) flock(to->folder.fd, LOCK_UN); /* until a receiver has locked it */
@sender }
@sender static void send_message(Sender *to, const void *message) { put(&to->folder, message); }
@sender static void finish_sender(Sender *to, const void *mark) {
@sender @unshared     put(&to->folder, mark);
@sender @shared     for (int i = 0; i < {receivers}; i++) put(&to->folder, mark);
@sender @shared @onesender     struct dirent **entries;
@sender @shared @onesender     while (list(to->folder.path, &entries, is_message) > 0) usleep(10000);
@sender @shared @onesender     remove_all(to->folder.path, is_part);
@sender @shared @onesender     rmdir(to->folder.path);
@sender }

@receiver typedef struct {
@receiver     Folder folder;
@receiver } Receiver;
@receiver static bool open_receiver(Receiver *from, const char *link) {
@receiver     from->folder = open_folder(link);
@receiver @unshared     if (flock(from->folder.fd, LOCK_EX | LOCK_NB) != 0) return close(from->folder.fd), false; /* two would share the messages */
@receiver     return true;
@receiver }
@receiver static void receive_message(Receiver *from, void *message) { get(&from->folder, message); }
@receiver static void close_receiver(Receiver *from) {
@receiver     drop_taken(&from->folder);
@receiver @unshared     remove_all(from->folder.path, is_part); /* of senders that died */
@receiver @unshared     rmdir(from->folder.path);               /* it stays if there is more, of the next sender */
@receiver }
