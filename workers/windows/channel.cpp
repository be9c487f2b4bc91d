#include "channel.hpp"

#include <atomic>

std::string error_name(DWORD code) {
    const char *name = nullptr;
    switch (code) {
    case ERROR_ACCESS_DENIED: name = "ERROR_ACCESS_DENIED"; break;
    case ERROR_NOT_ENOUGH_MEMORY: name = "ERROR_NOT_ENOUGH_MEMORY"; break;
    case ERROR_BROKEN_PIPE: name = "ERROR_BROKEN_PIPE"; break;
    case ERROR_DISK_FULL: name = "ERROR_DISK_FULL"; break;
    case ERROR_FILE_NOT_FOUND: name = "ERROR_FILE_NOT_FOUND"; break;
    case ERROR_PATH_NOT_FOUND: name = "ERROR_PATH_NOT_FOUND"; break;
    case ERROR_INVALID_PARAMETER: name = "ERROR_INVALID_PARAMETER"; break;
    case ERROR_PIPE_BUSY: name = "ERROR_PIPE_BUSY"; break;
    case ERROR_NO_DATA: name = "ERROR_NO_DATA"; break;
    case ERROR_MORE_DATA: name = "ERROR_MORE_DATA"; break;
    case ERROR_OPERATION_ABORTED: name = "ERROR_OPERATION_ABORTED"; break;
    case ERROR_NO_SYSTEM_RESOURCES: name = "ERROR_NO_SYSTEM_RESOURCES"; break;
    case ERROR_NOT_ENOUGH_QUOTA: name = "ERROR_NOT_ENOUGH_QUOTA"; break;
    case ERROR_COMMITMENT_LIMIT: name = "ERROR_COMMITMENT_LIMIT"; break;
    default: return "error " + std::to_string(code);
    }
    return std::string(name) + " (" + std::to_string(code) + ")";
}

namespace {

// The study allowed two connections.
constexpr DWORD INSTANCES = 2;

std::wstring fresh_name() {
    static std::atomic<unsigned> made{0};
    return L"\\\\.\\pipe\\hosepipe-" + std::to_wstring(GetCurrentProcessId()) + L"-" + std::to_wstring(made++);
}

[[noreturn]] void refused(const std::string &what) {
    throw Failed({"open", what + " failed with " + error_name(GetLastError()), std::nullopt, false});
}

}  // namespace

Channel::Channel(PipeType type, bool overlapped, std::uint64_t buffer_bytes) : overlapped(overlapped) {
    const std::wstring name = fresh_name();
    const DWORD how = overlapped ? FILE_FLAG_OVERLAPPED : 0;
    const bool messages = type == PipeType::Message;
    const DWORD mode = (messages ? PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE : PIPE_TYPE_BYTE | PIPE_READMODE_BYTE) |
                       PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS;
    const DWORD buffer = static_cast<DWORD>(buffer_bytes);
    reader = Handle(CreateNamedPipeW(name.c_str(), PIPE_ACCESS_DUPLEX | FILE_FLAG_FIRST_PIPE_INSTANCE | how, mode,
                                     INSTANCES, buffer, buffer, NMPWAIT_WAIT_FOREVER, nullptr));
    if (!reader) refused("CreateNamedPipe with buffers of " + std::to_string(buffer_bytes) + " bytes");
    writer = Handle(CreateFileW(name.c_str(), GENERIC_READ | GENERIC_WRITE, 0, nullptr, OPEN_EXISTING, how, nullptr));
    if (!writer) refused("CreateFile of the pipe's second end");
    DWORD out = 0, in = 0;
    if (!GetNamedPipeInfo(reader.get(), nullptr, &out, &in, nullptr)) refused("GetNamedPipeInfo");
    granted = {in, out};
}
