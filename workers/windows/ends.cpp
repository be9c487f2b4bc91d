#include "ends.hpp"

namespace {

[[noreturn]] void failed(const char *call, DWORD code) {
    throw Failed({"failed", std::string(call) + " failed with " + error_name(code), std::nullopt, false});
}

[[noreturn]] void corrupt(const std::string &what) {
    throw Failed({"corrupt", what, std::nullopt, false});
}

void wait_for_the_end_of(HANDLE pipe, Overlap &call) {
    if (!call.in_progress) return;
    CancelIoEx(pipe, &call.state);
    DWORD moved = 0;
    GetOverlappedResult(pipe, &call.state, &moved, TRUE);
}

}  // namespace

Overlap::Overlap() : event(CreateEventW(nullptr, TRUE, FALSE, nullptr)) {
    if (!event) failed("CreateEvent", GetLastError());
}

OVERLAPPED *Overlap::fresh() {
    state = {};
    state.hEvent = event.get();
    return &state;
}

Sender::Sender(const Case &wanted, const Channel &channel, Guard &guard, const Tile &tile)
    : pipe(channel.writer.get()), guard(guard), producer(tile, wanted.data),
      block_bytes(static_cast<DWORD>(wanted.block_bytes)), calls_in_progress(wanted.overlapped ? wanted.depth : 0) {
    // A block under way must not change; one that never changes can be under way many times.
    const std::size_t buffers = wanted.overlapped && producer.makes_fresh_blocks() ? wanted.depth : 1;
    for (std::size_t i = 0; i < buffers; ++i) {
        blocks.emplace_back(block_bytes);
        producer.first_fill(blocks.back());
    }
}

Sender::~Sender() {
    for (Overlap &call : calls_in_progress) wait_for_the_end_of(pipe, call);
}

void Sender::begin_block() {
    const Block &block = buffer(sent);
    DWORD moved = 0;
    if (calls_in_progress.empty()) {
        producer.fill(block);
        ++syscalls;
        if (!WriteFile(pipe, block.data(), block_bytes, &moved, nullptr)) failed("WriteFile", GetLastError());
        if (moved != block_bytes) corrupt("WriteFile took " + std::to_string(moved) + " bytes of a block");
    } else {
        Overlap &call = calls_in_progress[sent % calls_in_progress.size()];
        await(call);
        producer.fill(block);
        ++syscalls;
        const bool done = WriteFile(pipe, block.data(), block_bytes, nullptr, call.fresh());
        if (!done && GetLastError() != ERROR_IO_PENDING) failed("WriteFile", GetLastError());
        call.in_progress = true;
    }
    guard.sent.set(++sent);
}

// Waits only if the call has not ended yet: checking one that has ended needs no system call.
void Sender::await(Overlap &call) {
    if (!call.in_progress) return;
    if (!HasOverlappedIoCompleted(&call.state)) ++syscalls;
    DWORD moved = 0;
    const bool done = GetOverlappedResult(pipe, &call.state, &moved, TRUE);
    call.in_progress = false;
    if (!done) failed("WriteFile (overlapped)", GetLastError());
    if (moved != block_bytes) corrupt("WriteFile took " + std::to_string(moved) + " bytes of a block");
}

void Sender::finish() {
    for (Overlap &call : calls_in_progress) await(call);
}

Receiver::Receiver(const Case &wanted, const Channel &channel, Guard &guard, const Tile &tile)
    : pipe(channel.reader.get()), guard(guard), checker(tile, wanted.data),
      messages(wanted.type == PipeType::Message), room(wanted.block_bytes) {
    if (wanted.overlapped) call.emplace();
}

Receiver::~Receiver() {
    if (call) wait_for_the_end_of(pipe, *call);
}

DWORD Receiver::read(DWORD wanted_bytes) {
    DWORD moved = 0;
    ++syscalls;
    bool done = false;
    if (!call) {
        done = ReadFile(pipe, room.data(), wanted_bytes, &moved, nullptr);
    } else {
        done = ReadFile(pipe, room.data(), wanted_bytes, nullptr, call->fresh());
        if (done || GetLastError() == ERROR_IO_PENDING) {
            call->in_progress = true;
            if (!HasOverlappedIoCompleted(&call->state)) ++syscalls;
            done = GetOverlappedResult(pipe, &call->state, &moved, TRUE);
            call->in_progress = false;
        }
    }
    if (done) return moved;
    const DWORD code = GetLastError();
    if (code == ERROR_MORE_DATA) corrupt("a message is longer than the block that was sent");
    failed("ReadFile", code);
}

void Receiver::take_block() {
    DWORD left = static_cast<DWORD>(room.size());
    while (left > 0) {
        const DWORD moved = read(left);
        if (messages && moved != room.size()) {
            corrupt("a message of " + std::to_string(moved) + " bytes arrived where one of " +
                    std::to_string(room.size()) + " was sent");
        }
        if (!checker.accept(room.data(), moved)) {
            corrupt("other bytes arrived than were sent, after byte " + std::to_string(checker.position()));
        }
        received_bytes += moved;
        left -= moved;
    }
    guard.received.set(++received);
}
