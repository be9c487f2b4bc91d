// Boost.Lockfree's spsc_queue of fixed capacity, one for each direction, in memory that two processes share. Blocks of up to 64
// bytes are elements; longer ones go through a queue of bytes.

#include "worker.hpp"

#include <algorithm>
#include <array>

#include <sys/mman.h>
#include <sys/stat.h>

#include <boost/lockfree/spsc_queue.hpp>

// Maps one memory segment into both ends. The first end creates it by memfd_create(2), and the second one opens it through
// /proc, so that no named segment can be left behind.
template <class Shared> Shared *share(const worker::Job &job) {
    std::string link = job.path("segment");
    auto check = [&](bool succeeded) {
        if (!succeeded) {
            worker::fail(1, "%s: %s", link.c_str(), strerror(errno));
        }
    };
    int file;
    if (job.is_first()) {
        check((file = memfd_create("hosepipe-spsc", MFD_CLOEXEC)) >= 0);
        check(ftruncate(file, sizeof(Shared)) == 0);
    } else {
        job.wait_for("segment");
        check((file = open(link.c_str(), O_RDWR | O_CLOEXEC)) >= 0);
    }
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    check(memory != MAP_FAILED);
    if (!job.is_first()) {
        return static_cast<Shared *>(memory);
    }
    auto *shared = new (memory) Shared;
    std::string target = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
    check(symlink(target.c_str(), link.c_str()) == 0);
    return shared;
}

// A queue whose elements have N bytes.
template <std::size_t N> class Elements {
    static_assert(N <= worker::SLOT_MAX);
    using Element = std::array<std::uint8_t, N>;
    using Queue = boost::lockfree::spsc_queue<Element, boost::lockfree::capacity<65536 / N>>;
    std::array<Queue, 2> *queues;
    Queue &out, &in;
    Element element;

  public:
    explicit Elements(const worker::Job &job)
        : queues(share<std::array<Queue, 2>>(job)), out((*queues)[job.is_first() ? 0 : 1]),
          in((*queues)[job.is_first() ? 1 : 0]) {}
    void send(worker::Bytes bytes) {
        // A whole element is copied; the bytes after the end of the last message are not read.
        Element next;
        std::memcpy(next.data(), bytes.data(), N);
        for (worker::Backoff full; !out.push(next);) {
            full.pause();
        }
    }
    worker::Bytes receive(std::size_t length) {
        for (worker::Backoff empty; !in.pop(element);) {
            empty.pause();
        }
        return {element.data(), length};
    }
    void flush() {}
};

// A queue of bytes; each push and pop moves as many bytes as possible.
class Stream {
    using Queue = boost::lockfree::spsc_queue<std::uint8_t, boost::lockfree::capacity<1 << 20>>;
    std::array<Queue, 2> *queues;
    Queue &out, &in;
    std::vector<std::uint8_t> block;

  public:
    explicit Stream(const worker::Job &job)
        : queues(share<std::array<Queue, 2>>(job)), out((*queues)[job.is_first() ? 0 : 1]),
          in((*queues)[job.is_first() ? 1 : 0]), block(job.message_max()) {}
    void send(worker::Bytes bytes) {
        for (worker::Backoff full; !bytes.empty();) {
            std::size_t pushed = out.push(bytes.data(), bytes.size());
            bytes = bytes.subspan(pushed);
            if (pushed == 0) {
                full.pause();
            }
        }
    }
    worker::Bytes receive(std::size_t length) {
        worker::Backoff empty;
        for (std::size_t done = 0; done < length;) {
            std::size_t popped = in.pop(block.data() + done, length - done);
            done += popped;
            if (popped == 0) {
                empty.pause();
            }
        }
        return {block.data(), length};
    }
    void flush() {}
};

int main(int count, char **arguments) {
    worker::Job job = worker::parse(count, arguments);
    if (job.block <= 4) {
        return worker::run_end<Elements<4>>(job);
    }
    if (job.block <= 8) {
        return worker::run_end<Elements<8>>(job);
    }
    if (job.block <= 64) {
        return worker::run_end<Elements<64>>(job);
    }
    return worker::run_end<Stream>(job);
}
