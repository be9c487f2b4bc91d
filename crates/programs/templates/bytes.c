/* A stream of bytes: a call moves a message, or the part of it that fits. */
static void send_message(int me, const char *message) {
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = write(out[me], message + at, BYTES - at)) < 0) err(1, "write");
}
static void receive_message(int me, char *message) {
    for (ssize_t at = 0, n; at < BYTES; at += n)
        if ((n = read(in[me], message + at, BYTES - at)) <= 0) n ? err(1, "read") : errx(1, "the other end closed");
}
