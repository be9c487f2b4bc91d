@fork #include <fcntl.h>
@fork #include <sys/mman.h>
#define RING_BYTES {piece}
#define RING_SLOTS {slots}
@spin #define RING_SPIN
@library
static struct ring_end in[2], out[2];

@fork static void remove_meeting_place(void) {
@fork     if (made) shm_unlink(name);
@fork }
@fork static void make_meeting_place(void) {
@fork     int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
@fork     if (fd < 0) err(1, "shm_open %s", name);
@fork     made = 1; /* the memory outlives its users */
@fork     if (ftruncate(fd, {rings} * sizeof(struct ring)) || close(fd)) err(1, "ftruncate %s", name);
@fork }
@fork static void open_end(int me) {
@fork     int fd = shm_open(name, O_RDWR, 0);
@fork     struct ring *rings = mmap(NULL, {rings} * sizeof *rings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
@fork     if (fd < 0 || rings == MAP_FAILED || close(fd)) err(1, "mmap %s", name);
@fork     *(me == {FIRST} ? &out[me] : &in[me]) = (struct ring_end){.ring = rings};
@reply @fork     *(me == {FIRST} ? &in[me] : &out[me]) = (struct ring_end){.ring = rings + 1};
@fork }
@threads static struct ring rings[{rings}]; /* zeroed: empty */
@threads static void make_meeting_place(void) { (void)name; /* both ends see the same memory */ }
@threads static void open_end(int me) {
@threads     *(me == {FIRST} ? &out[me] : &in[me]) = (struct ring_end){.ring = rings};
@reply @threads     *(me == {FIRST} ? &in[me] : &out[me]) = (struct ring_end){.ring = rings + 1};
@threads }
@whole static void send_message(int me, const char *message) { ring_send(&out[me], message, BYTES); }
@whole static void receive_message(int me, char *message) { ring_receive(&in[me], message, BYTES); }
@pieces /* In pieces: the sender's copy of one overlaps the receiver's copy of the one before. */
@pieces static long piece_after(long at) { return BYTES - at < RING_BYTES ? BYTES - at : RING_BYTES; }
@pieces static void send_message(int me, const char *message) {
@pieces     for (long at = 0; at < BYTES; at += RING_BYTES) ring_send(&out[me], message + at, piece_after(at));
@pieces }
@pieces static void receive_message(int me, char *message) {
@pieces     for (long at = 0; at < BYTES; at += RING_BYTES) ring_receive(&in[me], message + at, piece_after(at));
@pieces }
