// A pair of sockets of libzmq over ipc: a message for each block.

#include "worker.hpp"

#include <zmq.h>

class Channel {
    void *socket;
    zmq_msg_t message;

    static void check(bool succeeded, const char *what) {
        if (!succeeded) {
            worker::fail(1, "%s: %s", what, zmq_strerror(zmq_errno()));
        }
    }

  public:
    explicit Channel(const worker::Job &job) {
        void *context = zmq_ctx_new();
        check(context != nullptr, "zmq_ctx_new");
        check((socket = zmq_socket(context, ZMQ_PAIR)) != nullptr, "zmq_socket");
        const int depth = int(job.depth());
        zmq_setsockopt(socket, ZMQ_SNDHWM, &depth, sizeof depth);
        zmq_setsockopt(socket, ZMQ_RCVHWM, &depth, sizeof depth);
        zmq_msg_init(&message);
        std::string endpoint = "ipc://" + job.path("socket");
        if (job.is_first()) {
            job.wait_for("bound");
            check(zmq_connect(socket, endpoint.c_str()) == 0, endpoint.c_str());
        } else {
            check(zmq_bind(socket, endpoint.c_str()) == 0, endpoint.c_str());
            job.reach("bound");
        }
    }
    void send(worker::Bytes bytes) {
        while (zmq_send(socket, bytes.data(), bytes.size(), 0) < 0) {
            check(zmq_errno() == EINTR, "zmq_send");
        }
    }
    worker::Bytes receive(std::size_t) {
        while (zmq_msg_recv(&message, socket, 0) < 0) {
            check(zmq_errno() == EINTR, "zmq_msg_recv");
        }
        return {static_cast<std::uint8_t *>(zmq_msg_data(&message)), zmq_msg_size(&message)};
    }
    void flush() {}
};

int main(int count, char **arguments) { return worker::run_end<Channel>(worker::parse(count, arguments)); }
