// A pair of sockets of nng over ipc: a message for each block.

#include "worker.hpp"

#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>

class Channel {
    nng_socket socket;
    nng_msg *message = nullptr;

    static void check(int error, const char *what) {
        if (error != 0) {
            worker::fail(1, "%s: %s", what, nng_strerror(error));
        }
    }

  public:
    explicit Channel(const worker::Job &job) {
        check(nng_pair0_open(&socket), "nng_pair0_open");
        check(nng_socket_set_int(socket, NNG_OPT_SENDBUF, int(job.depth())), NNG_OPT_SENDBUF);
        check(nng_socket_set_int(socket, NNG_OPT_RECVBUF, int(job.depth())), NNG_OPT_RECVBUF);
        // 0 means no limit: the lengths of all messages are known.
        check(nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, 0), NNG_OPT_RECVMAXSZ);
        std::string endpoint = "ipc://" + job.path("socket");
        if (job.is_first()) {
            job.wait_for("listening");
            check(nng_dial(socket, endpoint.c_str(), nullptr, 0), endpoint.c_str());
            job.reach("connected");
        } else {
            check(nng_listen(socket, endpoint.c_str(), nullptr, 0), endpoint.c_str());
            job.reach("listening");
            job.wait_for("connected");
        }
    }
    void send(worker::Bytes bytes) {
        check(nng_send(socket, const_cast<std::uint8_t *>(bytes.data()), bytes.size(), 0), "nng_send");
    }
    worker::Bytes receive(std::size_t) {
        nng_msg_free(std::exchange(message, nullptr));
        check(nng_recvmsg(socket, &message, 0), "nng_recvmsg");
        return {static_cast<std::uint8_t *>(nng_msg_body(message)), nng_msg_len(message)};
    }
    void flush() {}
};

int main(int count, char **arguments) { return worker::run_end<Channel>(worker::parse(count, arguments)); }
