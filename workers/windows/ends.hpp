// The two ends of a stream, with blocking or with overlapped calls.
#pragma once

#include "guard.hpp"
#include "payload.hpp"

// An overlapped call in progress, with the event that signals its end.
class Overlap {
  public:
    Overlap();
    Overlap(const Overlap &) = delete;
    OVERLAPPED *fresh();

    Handle event;
    OVERLAPPED state{};
    bool in_progress = false;
};

// Sends blocks. `begin_block` returns when the block has been written, or, with overlapped calls, when the call has begun
// and at most `depth` are in progress. Every member function can throw Failed.
class Sender {
  public:
    Sender(const Case &wanted, const Channel &channel, Guard &guard, const Tile &tile);
    // Cancels the calls in progress and waits for their end: until then the system uses their buffers.
    ~Sender();
    void begin_block();
    void finish();
    std::uint64_t calls() const { return syscalls; }

  private:
    void await(Overlap &call);
    const Block &buffer(std::size_t slot) const { return blocks[slot % blocks.size()]; }

    HANDLE pipe;
    Guard &guard;
    Producer producer;
    const DWORD block_bytes;
    std::vector<Block> blocks;
    std::vector<Overlap> calls_in_progress;  // empty if calls block
    std::uint64_t sent = 0;
    std::uint64_t syscalls = 0;
};

// Receives blocks. From a message pipe each block must arrive as one message of the right length.
class Receiver {
  public:
    Receiver(const Case &wanted, const Channel &channel, Guard &guard, const Tile &tile);
    ~Receiver();
    void take_block();
    std::uint64_t bytes() const { return received_bytes; }
    std::uint64_t calls() const { return syscalls; }
    std::optional<std::string> checksum() const { return checker.checksum(); }

  private:
    DWORD read(DWORD wanted_bytes);

    HANDLE pipe;
    Guard &guard;
    Checker checker;
    const bool messages;
    Block room;
    std::optional<Overlap> call;
    std::uint64_t received = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t syscalls = 0;
};
