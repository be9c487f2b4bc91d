// A named pipe and its two ends, made as in the study.
#pragma once

#include <windows.h>

#include <stdexcept>
#include <string>

#include "words.hpp"

// Owns a handle and closes it.
class Handle {
  public:
    Handle() = default;
    explicit Handle(HANDLE handle) : handle(handle == INVALID_HANDLE_VALUE ? nullptr : handle) {}
    Handle(Handle &&other) noexcept : handle(other.handle) { other.handle = nullptr; }
    Handle &operator=(Handle &&other) noexcept {
        std::swap(handle, other.handle);
        return *this;
    }
    ~Handle() {
        if (handle) CloseHandle(handle);
    }
    HANDLE get() const { return handle; }
    explicit operator bool() const { return handle != nullptr; }

  private:
    HANDLE handle = nullptr;
};

// The name and number of an error of the pipe calls, such as "ERROR_BROKEN_PIPE (109)"; for other errors only the number.
std::string error_name(DWORD code);

// Thrown when a case fails.
struct Failed : std::runtime_error {
    explicit Failed(Trouble trouble) : std::runtime_error(trouble.message), trouble(std::move(trouble)) {}
    Trouble trouble;
};

// Both ends of a duplex pipe: two instances allowed, infinite default time-out, buffers of `buffer_bytes` both ways.
// The reader is the end that made the pipe; the writer opened its name as a file, to read and to write.
struct Channel {
    Handle reader;
    Handle writer;
    Granted granted;
    const bool overlapped;

    // Throws Failed of kind `open`.
    Channel(PipeType type, bool overlapped, std::uint64_t buffer_bytes);
};
