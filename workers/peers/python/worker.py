"""A worker of hosepipe over Python's multiprocessing: `python3 worker.py pipe|queue|shared-memory pair|trip ...`, as
docs/WORKERS.md requires. The other end is a process that this one forks.

`pipe` is multiprocessing.Pipe with send_bytes and recv_bytes, `queue` is multiprocessing.Queue, which pickles and has a thread that
writes, `shared-memory` is a ring of slots in multiprocessing.shared_memory between two semaphores.
"""

import multiprocessing
import os
import sys
import threading
from functools import reduce
from multiprocessing import shared_memory
from operator import xor as exclusive_or
from time import monotonic_ns as now  # CLOCK_MONOTONIC
from typing import NamedTuple

PERIOD = 256
"""The length of the byte sequence of the stream: byte i is i mod PERIOD."""

context = multiprocessing.get_context("fork")


class Job(NamedTuple):
    """The command line, parsed."""

    trips: bool
    bytes: int
    block: int
    warmup: int
    result: str

    @property
    def total(self):
        """All bytes of the stream, warm-up included."""
        return self.warmup + self.bytes

    @property
    def message_max(self):
        """Length of the longest message."""
        return min(self.block, max(self.warmup, self.bytes, 1))

    @property
    def depth(self):
        """Messages that a queue holds: 1 MiB of them, at least 16 and at most 1024."""
        return min(max((1 << 20) // self.message_max, 16), 1024)

    def lengths(self, count):
        """The lengths of the blocks of `count` bytes."""
        full, rest = divmod(count, self.block)
        yield from (self.block for _ in range(full))
        if rest:
            yield rest


class Refusal(Exception):
    """The command line is wrong."""


def parse(arguments):
    """Reads ROLE BYTES BLOCK WARMUP RESULT."""
    if len(arguments) != 5 or arguments[0] not in ("pair", "trip"):
        raise Refusal("wanted: pair|trip BYTES BLOCK WARMUP RESULT; this program starts the other end itself")
    role, count, block, warmup, result = arguments
    job = Job(role == "trip", number("BYTES", count, 1), number("BLOCK", block, 1), number("WARMUP", warmup, 0), result)
    if job.total > 2**63 - 1:
        raise Refusal("BYTES and WARMUP together exceed 2^63 - 1")
    return job


def number(name, text, least):
    """Parses a decimal argument. int() alone would accept signs, underscores, spaces and the digits of other scripts."""
    digits = text.isascii() and text.isdigit() and len(text.lstrip("0")) <= 19
    if not digits or not least <= int(text) <= 2**63 - 1:
        raise Refusal(f"{name} is a decimal number from {least} to 2^63 - 1, not {text!r}")
    return int(text)


def append_result(job, line):
    """Adds one line to the result file in one write, since the two ends share it."""
    with open(job.result, "ab", buffering=0) as file:
        file.write(line.encode())


# --- the transports: two ends, each with send(bytes) and receive(length) ---


class Pipe:
    """An end of a multiprocessing.Pipe, which is a Connection."""

    def __init__(self, connection):
        self.send, self.connection = connection.send_bytes, connection

    def receive(self, _length):
        """The next message."""
        return self.connection.recv_bytes()


def pipes(_job):
    """Both ends of one Pipe."""
    return [Pipe(connection) for connection in context.Pipe()]


class Queues:
    """A Queue for each direction."""

    def __init__(self, out, back):
        self.send, self.back = out.put, back

    def receive(self, _length):
        """The next message."""
        return self.back.get()


def queues(job):
    """Both ends of two Queues."""
    there, back = context.Queue(job.depth), context.Queue(job.depth)
    return [Queues(there, back), Queues(back, there)]


class Ring:
    """One direction: slots in shared memory, and semaphores that count the free and the filled ones."""

    def __init__(self, job):
        self.slot, self.depth, self.at = job.message_max, job.depth, 0
        self.free, self.filled = context.Semaphore(job.depth), context.Semaphore(0)
        self.memory = shared_memory.SharedMemory(create=True, size=self.slot * self.depth)
        # The name is not needed, because the forked process inherits the mapping; without it no file is left behind.
        self.memory.unlink()

    def step(self):
        """The offset of this end's next slot."""
        self.at = (self.at + 1) % self.depth
        return self.at * self.slot

    def put(self, block):
        """Copies a message in."""
        self.free.acquire()
        at = self.step()
        self.memory.buf[at : at + len(block)] = block
        self.filled.release()

    def get(self, length):
        """Copies a message out."""
        self.filled.acquire()
        at = self.step()
        block = bytes(self.memory.buf[at : at + length])
        self.free.release()
        return block


class Rings:
    """A Ring for each direction."""

    def __init__(self, out, back):
        self.send, self.receive = out.put, back.get


def rings(job):
    """Both ends of two Rings."""
    there, back = Ring(job), Ring(job)
    return [Rings(there, back), Rings(back, there)]


TRANSPORTS = {"pipe": pipes, "queue": queues, "shared-memory": rings}

# --- the roles ---


class Arrived:
    """The XOR of all bytes. Messages are combined as integers, and the last integer is split into bytes."""

    def __init__(self):
        self.bytes = self.folded = 0

    def add(self, message):
        """Adds a message to the XOR."""
        self.folded ^= int.from_bytes(message, "little")
        self.bytes += len(message)

    def report(self, job, ready):
        """Appends the line of a receiver; exits with an error if the stream had the wrong length."""
        length = max((self.folded.bit_length() + 7) // 8, 1)
        xor = reduce(exclusive_or, self.folded.to_bytes(length, "little"), 0)
        append_result(job, f"recv bytes={self.bytes} xor={xor} ready_ns={ready} ended_ns={now()}\n")
        if self.bytes != job.total:
            sys.exit(f"worker: received {self.bytes} bytes instead of {job.total}")


def far_end(job, end):
    """Receives the stream; in round trips it sends every message back."""
    arrived = Arrived()
    ready = now()
    for part in (job.warmup, job.bytes):
        for length in job.lengths(part):
            if job.trips:
                end.send(end.receive(length))
            else:
                arrived.add(end.receive(length))
    if not job.trips:
        arrived.report(job, ready)


def await_end(other):
    """Waits for the other end. If it fails, this program ends, because its messages would never be received."""
    other.join()
    if other.exitcode != 0:
        print(f"python worker: the other end ended with {other.exitcode}", file=sys.stderr, flush=True)
        os._exit(1)


def near_end(job, end, other):
    """Sends the stream; in round trips it also receives and checks each answer."""
    sequence = bytes(range(PERIOD)) * (job.message_max // PERIOD + 2)
    arrived, position, began = Arrived(), 0, 0
    ready = now()
    for part in (job.warmup, job.bytes):
        began = now()
        for length in job.lengths(part):
            begin = position % PERIOD
            end.send(sequence[begin : begin + length])
            position += length
            if job.trips:
                arrived.add(end.receive(length))
    if job.trips:
        arrived.report(job, ready)
    other.join()
    append_result(job, f"send bytes={position} ready_ns={ready} began_ns={began}\n")


def main(arguments):
    """Returns the exit status."""
    name, *rest = arguments or [""]
    try:
        if name not in TRANSPORTS:
            raise Refusal(f"the first argument is one of {', '.join(TRANSPORTS)}, not {name!r}")
        job = parse(rest)
    except Refusal as refusal:
        print(f"python worker: {refusal}", file=sys.stderr)
        return 2
    near, far = TRANSPORTS[name](job)
    other = context.Process(target=far_end, args=(job, far))
    other.start()
    watcher = threading.Thread(target=await_end, args=(other,))
    watcher.start()
    near_end(job, near, watcher)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
