// Two ranks of MPI on this machine, as the OSU benchmarks drive them: a window of non-blocking sends and receives for streams, one send
// and one receive for a round trip. `pair` and `trip` execute mpirun, which starts both ranks.

#include "worker.hpp"

// The C interface alone.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

constexpr std::size_t WINDOW = 64;

class Channel {
    int other;
    std::size_t window;
    std::uint64_t to_post;
    std::vector<std::vector<std::uint8_t>> blocks;
    std::vector<MPI_Request> sends, receives;
    std::size_t sent = 0, received = 0, posted = 0;

    void post() {
        auto &block = blocks[posted % window];
        MPI_Irecv(block.data(), int(block.size()), MPI_BYTE, other, 0, MPI_COMM_WORLD, &receives[posted % window]);
        posted++;
        to_post--;
    }
    static std::uint64_t messages(const worker::Job &job) {
        auto count = [&](std::uint64_t bytes) { return bytes / job.block + (bytes % job.block != 0); };
        return count(job.warmup) + count(job.bytes);
    }

  public:
    explicit Channel(const worker::Job &job)
        : other(job.is_first() ? 1 : 0), window(job.is_round_trips() ? 1 : WINDOW),
          to_post(job.is_first() && !job.is_round_trips() ? 0 : messages(job)),
          blocks(to_post > 0 ? window : 0, std::vector<std::uint8_t>(job.message_max())), sends(window, MPI_REQUEST_NULL),
          receives(window, MPI_REQUEST_NULL) {
        while (to_post > 0 && posted < window) {
            post();
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void send(worker::Bytes bytes) {
        if (window == 1) {
            MPI_Send(bytes.data(), int(bytes.size()), MPI_BYTE, other, 0, MPI_COMM_WORLD);
            return;
        }
        MPI_Isend(bytes.data(), int(bytes.size()), MPI_BYTE, other, 0, MPI_COMM_WORLD, &sends[sent++ % window]);
        if (sent % window == 0) {
            flush();
        }
    }
    worker::Bytes receive(std::size_t) {
        // The block that was handed out before is free now.
        if (received > 0 && to_post > 0) {
            post();
        }
        MPI_Status status;
        int length;
        MPI_Wait(&receives[received % window], &status);
        MPI_Get_count(&status, MPI_BYTE, &length);
        return {blocks[received++ % window].data(), std::size_t(length)};
    }
    void flush() { MPI_Waitall(int(window), sends.data(), MPI_STATUSES_IGNORE); }
};

int main(int count, char **arguments) {
    worker::Job job = worker::parse(count, arguments, true);
    if (job.message_max() > INT32_MAX) {
        worker::fail(worker::WRONG_ARGUMENTS, "a message of MPI has at most 2^31 - 1 bytes");
    }
    if (getenv("OMPI_COMM_WORLD_RANK") == nullptr) {
        std::vector<char *> command;
        for (const char *word : {"mpirun", "-np", "2", "--oversubscribe", "--bind-to", "none"}) {
            command.push_back(const_cast<char *>(word));
        }
        command.insert(command.end(), arguments, arguments + count);
        command.push_back(nullptr);
        execvp(command[0], command.data());
        worker::fail(1, "mpirun: %s", strerror(errno));
    }
    MPI_Init(nullptr, nullptr);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        job.role = job.is_round_trips() ? "echo" : "recv";
    }
    Channel channel(job);
    if (rank == 0) {
        worker::send(job, channel, std::thread());
    } else {
        worker::receive(job, channel);
    }
    MPI_Finalize();
}
