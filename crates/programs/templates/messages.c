#include <sys/socket.h>
/* One call, one message. */
static void send_message(int me, const char *message) {
    if (send(out[me], message, BYTES, 0) != BYTES) err(1, "send");
}
static void receive_message(int me, char *message) {
    if (recv(in[me], message, BYTES, 0) != BYTES) err(1, "recv");
}
