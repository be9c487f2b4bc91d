"""A worker of hosepipe in Python: `python3 worker.py idiomatic|tuned ROLE ...`. The contract is docs/WORKERS.md.

The idiomatic way is subprocess.PIPE with buffered streams; the tuned way is os.read, os.write, integers as long as a
block and more than one process that reads.
"""

import mmap
import os
import subprocess
import sys
from functools import reduce
from operator import xor as exclusive_or
from time import monotonic_ns as now  # CLOCK_MONOTONIC
from typing import NamedTuple

PERIOD = 256
"""The length of the byte sequence of the stream: byte i is i mod PERIOD."""

READERS_MAX = 3
"""Processes that share the tuned receiver's work: as many as keep up with one writer, if there are CPUs for them."""


class Job(NamedTuple):
    """What the command line asks for."""

    role: str
    bytes: int
    block: int
    warmup: int
    result: str
    child: list

    @property
    def total(self):
        """All bytes of the stream, warm-up included."""
        return self.warmup + self.bytes


class Refusal(Exception):
    """A command line that breaks the contract."""


class Trouble(Exception):
    """A stream of the wrong length, or a child that failed."""


def parse(arguments):
    """Reads ROLE BYTES BLOCK WARMUP RESULT [CHILD...]."""
    if len(arguments) < 5:
        raise Refusal("wanted: send|recv|pair BYTES BLOCK WARMUP RESULT [CHILD...]")
    role, count, block, warmup, result, *child = arguments
    if role not in ("send", "recv", "pair"):
        raise Refusal(f"the role is send, recv or pair, not {role!r}")
    if not result:
        raise Refusal("RESULT is a path and may not be empty")
    if role == "pair" and not child:
        raise Refusal("pair wants the command of its child after RESULT")
    if role != "pair" and child:
        raise Refusal(f"{role} takes nothing after RESULT")
    count = number("BYTES", count, 0, 2**63 - 1)
    block = number("BLOCK", block, 1, 2**31 - 1)
    warmup = number("WARMUP", warmup, 0, 2**63 - 1)
    return Job(role, count, block, warmup, result, child)


def number(name, text, least, most):
    """A decimal argument; int() alone would take signs, underscores, spaces and the digits of other scripts."""
    digits = text.isascii() and text.isdigit() and len(text.lstrip("0")) <= len(str(most))
    if not digits or not least <= int(text) <= most:
        raise Refusal(f"{name} is a decimal number from {least} to {most}, not {text!r}")
    return int(text)


def pattern_of(job):
    """The sequence in a buffer from which every block can be cut."""
    sequence = bytes(range(PERIOD))
    return (sequence * (job.block // PERIOD + 2))[: job.block + PERIOD]


def send(job, pattern, write, close):
    """Writes the whole stream, closes the output and appends the result line."""
    position = 0

    def stream(until):
        nonlocal position
        while position < until:
            begin = position % PERIOD
            count = min(job.block, until - position)
            write(pattern[begin : begin + count])
            position += count

    ready = now()
    stream(job.warmup)
    began = now()
    stream(job.total)
    close()
    append_result(job, f"send bytes={position} ready_ns={ready} began_ns={began}\n")


def finish_receive(job, received, xor, ready, ended):
    """Appends the result line of a receiver, and raises Trouble if the stream has the wrong length."""
    append_result(job, f"recv bytes={received} xor={xor} ready_ns={ready} ended_ns={ended}\n")
    if received != job.total:
        raise Trouble(f"the input has {received} bytes where {job.total} were announced")


def append_result(job, line):
    """Adds one line to the result file in one write, because the two ends of a pair share the file."""
    with open(job.result, "ab", buffering=0) as file:
        file.write(line.encode())


def start(job, **options):
    """Starts the child; leaving the context closes its input and waits for it."""
    return subprocess.Popen(job.child, stdin=subprocess.PIPE, **options)


def check_child(job, child):
    """Raises Trouble if the child failed."""
    if child.returncode != 0:
        raise Trouble(f"the child {job.child[0]} ended with status {child.returncode}")


# --- idiomatic ---


def idiomatic_send(job):
    """Standard output as a binary buffered stream."""
    output = sys.stdout.buffer
    send(job, pattern_of(job), output.write, output.flush)


def idiomatic_pair(job):
    """The pipe of subprocess as a buffered stream."""
    with start(job) as child:
        send(job, pattern_of(job), child.stdin.write, child.stdin.close)
    check_child(job, child)


def idiomatic_recv(job):
    """Standard input as a binary buffered stream; reduce() is a loop in C with one step for every byte."""
    received = xor = ended = 0
    ready = now()
    while block := sys.stdin.buffer.read(job.block):
        xor = reduce(exclusive_or, block, xor)
        received += len(block)
        if not ended and received >= job.total:
            ended = now()
    if received != job.total or not ended:
        ended = now()
    finish_receive(job, received, xor, ready, ended)


# --- tuned ---


def writer_to(descriptor):
    """A function that writes a whole memoryview, in one system call if the system takes it whole."""

    def write(block):
        done = os.write(descriptor, block)
        while done < len(block):
            done += os.write(descriptor, block[done:])

    return write


def on_page(pattern):
    """A view of the pattern in memory that begins on a page, so that no block is copied on the way to write(2)."""
    view = memoryview(mmap.mmap(-1, len(pattern)))
    view[:] = pattern
    return view


def tuned_send(job):
    send(job, on_page(pattern_of(job)), writer_to(1), lambda: None)


def tuned_pair(job):
    """os.write into the pipe of subprocess, without its stream."""
    with start(job, bufsize=0) as child:
        send(job, on_page(pattern_of(job)), writer_to(child.stdin.fileno()), child.stdin.close)
    check_child(job, child)


def tuned_recv(job):
    """Several processes read the same pipe, and each computes the XOR of its part: the order has no effect on it."""
    processes = min(len(os.sched_getaffinity(0)), READERS_MAX)
    ready = now()  # another process may read first
    readers = [another_reader(job) for _ in range(processes - 1)]
    received, xor, ended = drain(job.block)
    for process, report in readers:
        os.waitpid(process, 0)
        fields = os.read(report, 4096).split()
        if not fields:
            raise Trouble("another reader failed")
        received += int(fields[0])
        xor ^= int(fields[1])
        ended = max(ended, int(fields[2]))
    if received != job.total:
        ended = now()
    finish_receive(job, received, xor, ready, ended)


def another_reader(job):
    """Forks a process that drains standard input too; returns its PID and the pipe on which it reports."""
    report, to_report = os.pipe()
    process = os.fork()
    if process > 0:
        os.close(to_report)
        return process, report
    try:
        os.write(to_report, b"%d %d %d" % drain(job.block))
    except OSError as error:
        print(f"python tuned recv, another reader: {error}", file=sys.stderr)
    finally:
        os._exit(0)


def drain(block_bytes):
    """Reads standard input to its end. Returns the number of bytes, their XOR, and the time when the XOR was complete.

    A block becomes one integer (about 0.35 ns a byte, the most expensive step), integers are combined by one XOR, and
    only the result is reduced to a byte. That is done after the end of the input, which a sender may delay after its
    last byte. So the time is that of the last block, plus the duration of the reduction.
    """
    keep_heap()
    received = folded = 0
    last = now()
    while block := os.read(0, block_bytes):
        folded ^= int.from_bytes(block, "little")
        received += len(block)
        last = now()
    input_ended = now()
    xor = reduce(exclusive_or, folded.to_bytes(block_bytes, "little"), 0)
    return received, xor, last + now() - input_ended


def keep_heap():
    """Makes the C library keep freed memory instead of returning it to the system after every block.

    Once a large mapping was freed, blocks of up to its size come from the heap, whose top is trimmed only beyond twice
    that size: see M_MMAP_THRESHOLD in mallopt(3). Nothing of the mapping is touched.
    """
    bytes(16 * 2**20)


ROLES = {
    "idiomatic": {"send": idiomatic_send, "recv": idiomatic_recv, "pair": idiomatic_pair},
    "tuned": {"send": tuned_send, "recv": tuned_recv, "pair": tuned_pair},
}


def main(arguments):
    """Returns the exit status."""
    name, *rest = arguments or [""]
    try:
        if name not in ROLES:
            raise Refusal(f"the first argument is idiomatic or tuned, not {name!r}")
        job = parse(rest)
        ROLES[name][job.role](job)
        return 0
    except Refusal as refusal:
        print(f"python worker: {refusal}", file=sys.stderr)
        return 2
    except (OSError, Trouble) as trouble:
        print(f"python {name} {rest[0]}: {trouble}", file=sys.stderr)
        # Flushing the buffer at exit must not raise another error if the receiver has ended.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
