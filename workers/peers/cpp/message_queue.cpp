// Boost.Interprocess's message_queue, one for each direction: a message for each block.

#include "worker.hpp"

#include <optional>

#include <sys/stat.h>

#include <boost/interprocess/ipc/message_queue.hpp>

namespace ipc = boost::interprocess;

class Channel {
    std::optional<ipc::message_queue> queues[2];
    ipc::message_queue *out, *in;
    std::vector<std::uint8_t> block;

  public:
    explicit Channel(const worker::Job &job) : block(job.message_max()) {
        // Names that only this run has, by the device and inode of its TMPDIR. Boost makes files of these names in /dev/shm; they are removed
        // when both ends have opened them.
        struct stat folder;
        if (stat(job.folder.c_str(), &folder) != 0) {
            worker::fail(1, "%s: %s", job.folder.c_str(), strerror(errno));
        }
        std::string stem = "hosepipe-boost-" + std::to_string(folder.st_dev) + "-" + std::to_string(folder.st_ino) + "-";
        std::string names[2] = {stem + "there", stem + "back"};
        try {
            if (job.is_first()) {
                for (int i = 0; i < 2; i++) {
                    ipc::message_queue::remove(names[i].c_str());
                    queues[i].emplace(ipc::create_only, names[i].c_str(), job.depth(), job.message_max(), ipc::permissions(0600));
                }
                job.reach("created");
                job.wait_for("opened");
                for (auto &name : names) {
                    ipc::message_queue::remove(name.c_str());
                }
            } else {
                job.wait_for("created");
                for (int i = 0; i < 2; i++) {
                    queues[i].emplace(ipc::open_only, names[i].c_str());
                }
                job.reach("opened");
            }
        } catch (const ipc::interprocess_exception &error) {
            worker::fail(1, "message_queue: %s", error.what());
        }
        out = &*queues[job.is_first() ? 0 : 1];
        in = &*queues[job.is_first() ? 1 : 0];
    }
    void send(worker::Bytes bytes) { out->send(bytes.data(), bytes.size(), 0); }
    worker::Bytes receive(std::size_t) {
        ipc::message_queue::size_type length;
        unsigned priority;
        in->receive(block.data(), block.size(), length, priority);
        return {block.data(), length};
    }
    void flush() {}
};

int main(int count, char **arguments) { return worker::run_end<Channel>(worker::parse(count, arguments)); }
