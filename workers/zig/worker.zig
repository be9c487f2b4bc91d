//! A worker in Zig: one end of a pipe, or both. The contract is docs/WORKERS.md; README.md says how the two ways differ.

const std = @import("std");
const Io = std.Io;
const File = std.Io.File;
const posix = std.posix;

/// The byte at position i of the stream is i mod 256.
const period = 256;
const page_bytes = 4096;
/// The buffer of a `File.Reader` or `File.Writer`, as large as in a project made by `zig init`. A larger one would only add copies.
const interface_buffer_bytes = 1024;

const Way = enum { idiomatic, tuned };
const Role = enum { send, recv, pair };

const Job = struct {
    way: Way,
    role: Role,
    bytes: u64,
    block: u64,
    warmup: u64,
    result: []const u8,
    child: []const []const u8,
};

/// Ends the program with one sentence on standard error.
fn fail(status: u8, comptime format: []const u8, values: anytype) noreturn {
    std.debug.print("worker: " ++ format ++ "\n", values);
    std.process.exit(status);
}

/// `awake` is CLOCK_MONOTONIC, the clock that stops while the machine is suspended.
fn nowNs(io: Io) i96 {
    return Io.Clock.awake.now(io).nanoseconds;
}

// ---- the ends: one type for each way to write and to read ----

const WriterOutput = struct {
    writer: File.Writer,

    fn writeAll(output: *WriterOutput, block: []const u8) void {
        output.writer.interface.writeAll(block) catch output.failed();
    }

    fn flush(output: *WriterOutput) void {
        output.writer.interface.flush() catch output.failed();
    }

    fn failed(output: *WriterOutput) noreturn {
        fail(1, "write: {t}", .{output.writer.err orelse error.Unexpected});
    }
};

const DescriptorOutput = struct {
    descriptor: posix.fd_t,

    fn writeAll(output: *DescriptorOutput, block: []const u8) void {
        var rest = block;
        while (rest.len > 0) {
            const written = posix.system.write(output.descriptor, rest.ptr, rest.len);
            switch (posix.errno(written)) {
                .SUCCESS => rest = rest[@intCast(written)..],
                .INTR => {},
                else => |errno| fail(1, "write: {t}", .{errno}),
            }
        }
    }

    fn flush(_: *DescriptorOutput) void {}
};

const ReaderInput = struct {
    reader: File.Reader,

    /// Fills the whole block unless the input ends.
    fn read(input: *ReaderInput, block: []u8) usize {
        return input.reader.interface.readSliceShort(block) catch
            fail(1, "read: {t}", .{input.reader.err orelse error.Unexpected});
    }

    fn xorOf(bytes: []const u8) u8 {
        var xor: u8 = 0;
        for (bytes) |byte| xor ^= byte;
        return xor;
    }
};

const DescriptorInput = struct {
    descriptor: posix.fd_t,

    fn read(input: *DescriptorInput, block: []u8) usize {
        return posix.read(input.descriptor, block) catch |err| fail(1, "read: {t}", .{err});
    }

    /// An explicit vector, which is four registers of 64 bytes or eight of 32: the compiler does not vectorise the loop over bytes above.
    fn xorOf(bytes: []const u8) u8 {
        const Lanes = @Vector(256, u8);
        var lanes: Lanes = @splat(0);
        var rest = bytes;
        while (rest.len >= 256) : (rest = rest[256..]) lanes ^= rest[0..256].*;
        return @reduce(.Xor, lanes) ^ ReaderInput.xorOf(rest);
    }
};

// ---- the roles, for either way ----

/// Begins at a page, so that vectors and copies are aligned; the allocator aligns large blocks like this in any case.
fn bufferOf(gpa: std.mem.Allocator, bytes: u64) []align(page_bytes) u8 {
    return gpa.alignedAlloc(u8, .fromByteUnits(page_bytes), bytes) catch fail(1, "no memory for the block", .{});
}

/// Appends the line in one write, because the two ends of a pair share the file; std.Io has no append mode.
fn appendResult(io: Io, job: Job, comptime format: []const u8, values: anytype) void {
    var memory: [160]u8 = undefined;
    const line = std.fmt.bufPrint(&memory, format, values) catch unreachable; // four numbers of 20 digits fit
    const flags: posix.O = .{ .ACCMODE = .WRONLY, .APPEND = true, .CREAT = true, .CLOEXEC = true };
    const descriptor = posix.openat(posix.AT.FDCWD, job.result, flags, 0o666) catch |err|
        fail(1, "{s}: {t}", .{ job.result, err });
    const result: File = .{ .handle = descriptor, .flags = .{ .nonblocking = false } };
    defer result.close(io);
    result.writeStreamingAll(io, line) catch |err| fail(1, "{s}: {t}", .{ job.result, err });
}

const Sent = struct {
    bytes: u64,
    ready_ns: i96,
    began_ns: i96,

    fn append(sent: Sent, io: Io, job: Job) void {
        appendResult(io, job, "send bytes={d} ready_ns={d} began_ns={d}\n", .{
            sent.bytes, sent.ready_ns, sent.began_ns,
        });
    }
};

fn sendStream(gpa: std.mem.Allocator, io: Io, job: Job, output: anytype) Sent {
    const block = @min(job.block, @max(job.warmup, job.bytes));
    const sequence = bufferOf(gpa, block + period);
    defer gpa.free(sequence);
    for (sequence, 0..) |*byte, i| byte.* = @truncate(i);
    const ready_ns = nowNs(io);
    const warmed = sendPart(output, sequence, block, 0, job.warmup);
    const began_ns = nowNs(io);
    return .{
        .bytes = sendPart(output, sequence, block, warmed, job.bytes),
        .ready_ns = ready_ns,
        .began_ns = began_ns,
    };
}

/// Writes `bytes` bytes from position `from` on in blocks, of which the last may be shorter; returns the new position.
fn sendPart(output: anytype, sequence: []const u8, block: u64, from: u64, bytes: u64) u64 {
    const end = from + bytes;
    var position = from;
    while (position < end) {
        const length = @min(block, end - position);
        output.writeAll(sequence[position % period ..][0..length]);
        position += length;
    }
    output.flush();
    return position;
}

/// Sends to a file, which is standard output or the pipe to a child.
fn sendTo(gpa: std.mem.Allocator, io: Io, job: Job, file: File) Sent {
    switch (job.way) {
        .idiomatic => {
            var memory: [interface_buffer_bytes]u8 = undefined;
            var output: WriterOutput = .{ .writer = file.writerStreaming(io, &memory) };
            return sendStream(gpa, io, job, &output);
        },
        .tuned => {
            var output: DescriptorOutput = .{ .descriptor = file.handle };
            return sendStream(gpa, io, job, &output);
        },
    }
}

fn recvStream(gpa: std.mem.Allocator, io: Io, job: Job, input: anytype) void {
    const block = bufferOf(gpa, job.block);
    defer gpa.free(block);
    const expected = job.warmup + job.bytes;
    var received: u64 = 0;
    var xor: u8 = 0;
    var ended_ns: ?i96 = null;
    const ready_ns = nowNs(io);
    while (true) {
        const got = input.read(block);
        xor ^= @TypeOf(input.*).xorOf(block[0..got]);
        received += got;
        if (ended_ns == null and (received >= expected or got == 0)) ended_ns = nowNs(io);
        if (got == 0) break;
    }
    appendResult(io, job, "recv bytes={d} xor={d} ready_ns={d} ended_ns={d}\n", .{
        received, xor, ready_ns, ended_ns.?,
    });
    if (received != expected) fail(1, "received {d} bytes instead of {d}", .{ received, expected });
}

fn runRecv(gpa: std.mem.Allocator, io: Io, job: Job) void {
    switch (job.way) {
        .idiomatic => {
            var memory: [interface_buffer_bytes]u8 = undefined;
            var input: ReaderInput = .{ .reader = File.stdin().readerStreaming(io, &memory) };
            recvStream(gpa, io, job, &input);
        },
        .tuned => {
            var input: DescriptorInput = .{ .descriptor = File.stdin().handle };
            recvStream(gpa, io, job, &input);
        },
    }
}

fn runPair(gpa: std.mem.Allocator, io: Io, job: Job) void {
    const program = job.child[0];
    var child = std.process.spawn(io, .{ .argv = job.child, .stdin = .pipe }) catch |err|
        fail(1, "{s}: {t}", .{ program, err });
    const sent = sendTo(gpa, io, job, child.stdin.?);
    child.stdin.?.close(io);
    child.stdin = null;
    const end = child.wait(io) catch |err| fail(1, "wait: {t}", .{err});
    sent.append(io, job);
    if (!end.success()) fail(1, "{s} {f}", .{ program, end });
}

// ---- the command line ----

fn number(name: []const u8, text: []const u8, smallest: u64) u64 {
    // parseInt takes a sign and underscores; the contract has digits only.
    const valid = for (text) |character| {
        if (!std.ascii.isDigit(character)) break false;
    } else true;
    if (valid) {
        if (std.fmt.parseInt(u63, text, 10)) |value| {
            if (value >= smallest) return value;
        } else |_| {}
    }
    fail(2, "{s} is \"{s}\", not a whole number from {d} to 2^63 - 1", .{ name, text, smallest });
}

fn word(Choice: type, name: []const u8, text: []const u8) Choice {
    return std.meta.stringToEnum(Choice, text) orelse
        fail(2, "the {s} is \"{s}\", expected one of: {s}", .{
            name, text, comptime blk: {
                var list: []const u8 = "";
                for (std.meta.fieldNames(Choice)) |field| list = list ++ " " ++ field;
                break :blk list[1..];
            },
        });
}

pub fn main(init: std.process.Init) !void {
    const arguments = try init.minimal.args.toSlice(init.arena.allocator());
    if (arguments.len < 7) {
        fail(2, "expected: idiomatic|tuned send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]", .{});
    }
    const job: Job = .{
        .way = word(Way, "way", arguments[1]),
        .role = word(Role, "role", arguments[2]),
        .bytes = number("BYTES", arguments[3], 0),
        .block = number("BLOCK", arguments[4], 1),
        .warmup = number("WARMUP", arguments[5], 0),
        .result = arguments[6],
        .child = @ptrCast(arguments[7..]),
    };
    if (job.bytes + job.warmup > std.math.maxInt(i64)) fail(2, "BYTES and WARMUP together exceed 2^63 - 1", .{});
    if (job.role == .pair and job.child.len == 0) fail(2, "pair needs the command of its child", .{});
    if (job.role != .pair and job.child.len > 0) fail(2, "\"{s}\" is an argument too many", .{job.child[0]});
    switch (job.role) {
        .send => sendTo(init.gpa, init.io, job, .stdout()).append(init.io, job),
        .recv => runRecv(init.gpa, init.io, job),
        .pair => runPair(init.gpa, init.io, job),
    }
}
