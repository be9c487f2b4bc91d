"""ring.py: whole messages through shared memory, from one sender to one receiver (processes or containers).
Copy it: MIT or Apache-2.0, as hosepipe is. Python 3.9 or later, Linux, no package. The bytes in memory are described in LAYOUT.md.

    sender = Sender("/dev/shm/ring", 1 << 20)          receiver = Receiver("/dev/shm/ring", 1 << 20)
    sender.send(b"hello")                              message = receiver.receive()
    sender.finish()                                    receiver.receive()  # raises Ended

An end that was killed at any instruction loses nothing that was published; a new end with the same role goes on where it stopped, and
only the message that a killed receiver had in hand comes a second time.
"""
import collections
import ctypes
import errno
import fcntl
import mmap
import os
import select
import socket as sockets
import stat
import struct
import threading
import time

SPIN, FUTEX, EVENTFD, NOWAIT = range(4)  # what an end does that must wait
MAGIC, VERSION, HEAD_BYTES = int.from_bytes(b"ring", "little"), 3, 4096
ROOM, TAKEN, SLEEPERS, RECORDS = 32, 64, (96, 128), 1024  # words, counted from the first of the ring
WORD = (1 << 32) - 1
# The header of a record: 0, it is not there yet; or the length plus 1; or go on at the first byte; or the sender has finished.
SKIP, END, LENGTH = WORD, WORD - 1, (1 << 30) - 1
ALIGNED = 1 << 31  # beside a length: the message begins at the next multiple of 64, and not right behind
RUN = 1 << 30  # the record is a run: messages of this length behind a second word, which says how far they go
ALIGN_FROM = 1024  # messages of at least so many bytes begin at a multiple of 64
LOOKS, SLEEP_MS = {SPIN: 20000, FUTEX: 20, EVENTFD: 20, NOWAIT: 1}, 250
SENDER, RECEIVER, SETUP = 0, 1, 2  # roles, and the bytes of the file that are locked
F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW = 36, 37, 38
LOCK = struct.Struct("hhqqi")
CALLS = {"x86_64": (202, 324), "i686": (240, 375), "ppc64le": (221, 365), "s390x": (238, 356)}
SYS_FUTEX, SYS_MEMBARRIER = CALLS.get(os.uname().machine, (98, 283))
FUTEX_WAIT, FUTEX_WAKE, MEMBARRIER, REGISTER_MEMBARRIER = 0, 1, 2, 4
libc = ctypes.CDLL(None, use_errno=True)


class Ended(Exception):
    """The sender has finished."""


class Absent(Exception):
    """This end waits, and the other one is not there: call again to go on waiting."""


class Again(Exception):
    """This end never waits."""


class Damaged(Exception):
    """The other end wrote what makes no sense."""


class Run(collections.namedtuple("Run", "bytes length stride count")):
    """Room for messages of one length that share a record, or such messages: `count` of them in `bytes`, `stride` bytes apart (the length up
    to a multiple of 4; of 64, for 1024 bytes and more)."""

    def messages(self):
        return (self.bytes[at : at + self.length] for at in range(0, self.count * self.stride, self.stride))


def start_of(at, header_bytes, is_aligned):
    """From a record to its first message."""
    return (at + header_bytes + 63 & -64) - at if is_aligned else header_bytes


def stride_of(length, is_aligned):
    """From one message of a run to the next."""
    return length + 63 & -64 if is_aligned else length + 3 & -4


def lock(file, command, byte, kind=fcntl.F_WRLCK):
    return LOCK.unpack_from(fcntl.fcntl(file, command, LOCK.pack(kind, 0, byte, 1, 0)))[0]


# A 32-bit word is read and written by one instruction. On x86 nothing more is needed: stores and loads keep their order there, and only
# an end that sleeps needs a fence. A lock that is released and taken again is one.
gate = threading.Lock()
gate.acquire()
is_ordered = os.uname().machine in ("x86_64", "i686")


def fence():
    gate.release()
    gate.acquire()


class End:
    """What both ends have. One thread at a time."""

    def __init__(self, path, capacity=0, wait=FUTEX, events=None):
        is_path = not isinstance(path, int)
        self.wait, self.events, self.held, self.seen = wait, events, 0, 0
        self.file = open_file(path) if is_path else path
        try:
            self._map(capacity)
            self._resume()
        except BaseException:
            End.close(self)
            raise
        if is_path and os.fstat(self.file).st_nlink == 0:  # it was removed before this end had its lock
            End.close(self)
            self.__init__(path, capacity, wait, events)

    def _map(self, capacity):
        try:
            lock(self.file, F_OFD_SETLK, self.role)
        except (BlockingIOError, PermissionError):
            raise OSError(errno.EBUSY, "such an end is alive") from None
        lock(self.file, F_OFD_SETLKW, SETUP)  # a setup is repeated by the next end if this one dies in it
        found = os.fstat(self.file)
        head = os.pread(self.file, 16, 0) if stat.S_ISREG(found.st_mode) else b"no regular file!"
        *words, in_file = struct.unpack("=4I", head.ljust(16, b"\0"))
        is_new = words[0] == 0
        capacity = capacity if is_new else in_file
        whole, is_capacity = HEAD_BYTES + capacity, capacity in [1 << bits for bits in range(12, 31)]
        if is_new and not is_capacity:
            raise ValueError("a ring holds a power of two of bytes, 4096 to 2^30")
        makes_sense = all(word == wanted or is_new and word == 0 for word, wanted in zip(words, (MAGIC, VERSION, HEAD_BYTES)))
        if not makes_sense or not is_capacity or (found.st_size > whole if is_new else found.st_size < whole):
            raise OSError(errno.EPROTO, "it is no ring of this version")
        if is_new:
            os.posix_fallocate(self.file, 0, whole)  # a full file system is an error here, and a signal later
        self.memory, self.mask = mmap.mmap(self.file, whole), capacity - 1
        if is_new:
            self.memory[4:16] = struct.pack("=3I", VERSION, HEAD_BYTES, capacity)
            memoryview(self.memory).cast("I")[0] = MAGIC
        lock(self.file, F_OFD_SETLK, SETUP, fcntl.F_UNLCK)

    def _resume(self):
        """Goes on from the words in memory."""
        self.view = memoryview(self.memory)
        self.words, self.pairs = self.view.cast("I"), self.view.cast("Q")
        self.sleeps, self.peer_sleeps, self.peer_pair = SLEEPERS[self.role], SLEEPERS[1 - self.role], SLEEPERS[1 - self.role] // 2
        self.needs_fence = libc.syscall(SYS_MEMBARRIER, REGISTER_MEMBARRIER, 0, 0) != 0
        self.words[self.sleeps + 1], self.words[self.sleeps] = self.needs_fence, 0
        self.given, self.own = self.words[ROOM], self.words[TAKEN]
        if self.given % 8 or self.own - self.given & WORD > self.mask - 7:
            raise Damaged

    def peer_is_there(self):
        """The kernel releases the lock of an end that dies, whatever the cause, and in any container."""
        return lock(self.file, F_OFD_GETLK, 1 - self.role) != fcntl.F_UNLCK

    def _header(self, position):
        """The word that is the header of the record there."""
        return RECORDS + ((position & self.mask) >> 2)

    def _parse(self, header):
        """The messages of the next record: from it to the first one, to the end of the last one; bytes of each, and from one to the next (0:
        there is one)."""
        at, length = self.own & self.mask, (header & LENGTH) - 1
        start = start_of(at, 8 if header & RUN else 4, header & ALIGNED)
        stop = start + length
        stride = stride_of(length, header & ALIGNED) if header & RUN else 0
        if header & RUN:
            first, stop = stop, self.words[RECORDS + (at >> 2) + 1]
            if length < 1 or stop < first or (stop - first) % stride:
                raise Damaged
        if header >= END or length < 0 or at + stop > self.mask + 1:
            raise Damaged
        return start, stop, length, stride

    def _whole(self, header):
        """The bytes of the next record."""
        if header == END:
            return 8
        if header == SKIP and self.own & self.mask > 0:  # a whole lap would have no end
            return self.mask + 1 - (self.own & self.mask)
        return self._parse(header)[1] + 7 & -8

    def _notify(self):
        """A word was stored: either this end sees that the other one sleeps, or that one sees the word, because its membarrier(2) is a
        fence here as well."""
        fence()
        how = self.words[self.peer_sleeps]
        if how:
            self.words[self.peer_sleeps] = 0
        if how == 1:
            self._futex(self.peer_sleeps, FUTEX_WAKE, None)
        elif how == 2 and self.events:
            os.write(self.events[1], struct.pack("=Q", 1))

    def _futex(self, word, call, limit):
        libc.syscall(SYS_FUTEX, ctypes.byref(ctypes.c_uint32.from_buffer(self.memory, 4 * word)), call, 1, limit)

    def _is_unchanged(self):
        """Whether the word that the other end writes is as it was."""
        return self.words[self._peer_word()] == self.seen

    def arm(self):
        """Before a poll of event(): true if there is nothing to do now, and the other end will write to it."""
        return self._is_unchanged() and self._announce(2)

    def event(self):
        """The descriptor to poll; each wake-up needs one read of 8 bytes."""
        return self.events[0]

    def _announce(self, how):
        """Says that this end sleeps; false if the word has changed, and it must not."""
        self.words[self.sleeps] = how
        fence()
        if not self.needs_fence:
            libc.syscall(SYS_MEMBARRIER, MEMBARRIER, 0, 0)
        return self._is_unchanged()

    def _sleep(self):
        if self.wait == EVENTFD and self.events:
            if self._announce(2) and select.select([self.events[0]], [], [], SLEEP_MS / 1000)[0]:
                os.read(self.events[0], 8)
        elif self._announce(1):
            self._futex(self.sleeps, FUTEX_WAIT, (ctypes.c_long * 2)(0, SLEEP_MS * 1000000))
        self.words[self.sleeps] = 0

    def _wait(self):
        """Waits until the word that the other end writes differs from `seen`."""
        absent, word = False, self._peer_word()
        while True:
            for looks in range(LOOKS[self.wait]):
                if self.words[word] != self.seen:
                    return
                if looks % 64 == 63:
                    time.sleep(0)  # another thread of this program may have to run
            if self.wait == NOWAIT:
                raise Again
            if absent:
                raise Absent
            if self.wait != SPIN:
                self._sleep()
            # What died may have published before: one more look.
            absent = self._is_unchanged() and not self.peer_is_there()
            if absent and self.wait == SPIN:
                time.sleep(0.001)  # none is there whose answer could be late

    def close(self):
        """Lets go of the ring, and of the message in hand. The file stays. (So does the mapping, until the program ends.)"""
        lock(self.file, F_OFD_SETLK, self.role, fcntl.F_UNLCK)  # the mapping has a copy of the descriptor
        os.close(self.file)


def open_file(path):
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT, 0o600)


class Sender(End):
    role = SENDER

    def _resume(self):
        super()._resume()
        self.seen = self.own = self.given
        while header := self.words[self._header(self.own)]:
            self.own += self._whole(header)
            if self.own - self.seen & WORD > self.mask - 7:
                raise Damaged
        self.given = self.limit = self.own  # where the first record begins that is not published; up to where there is room in one piece

    def reserve(self, length):
        """Room for a message of up to `length` bytes, to be written in place; waits until there is. Then stage() or commit()."""
        return self._make_room(4, length, length >= ALIGN_FROM)

    def stage(self, length):
        """The reserved message is written, and this long; visible after publish()."""
        self._mark(length + 1 | (ALIGNED if self.held > 4 else 0), self.held + length + 7 & -8)

    def commit(self, length):
        """The same, visible at once."""
        self.stage(length)
        self.publish()

    def reserve_run(self, length, count):
        """Room for up to `count` messages of `length` bytes each that share a record: at least one, and no more than an eighth of the ring
        holds; waits until there is. Then commit_run()."""
        if length == 0:
            raise ValueError("a run of empty messages")
        stride = stride_of(length, length >= ALIGN_FROM)
        count = max(1, min(count, (self.mask + 1) // 8 // stride))
        self.run = Run(self._make_room(8, (count - 1) * stride + length, length >= ALIGN_FROM), length, stride, count)
        return self.run

    def commit_run(self, count):
        """The first `count` messages of the reserved run are written; visible at once."""
        if count > 0:
            stop = self.held + (count - 1) * self.run.stride + self.run.length
            self.words[self._header(self.own) + 1] = stop
            self._mark(self.run.length + 1 | RUN | (ALIGNED if self.run.length >= ALIGN_FROM else 0), stop + 7 & -8)
            self.publish()

    def push(self, message):
        """Copies a message into the ring; visible after publish()."""
        self.reserve(len(message))[:] = message
        self.stage(len(message))

    def send(self, message):
        """The same, visible at once."""
        own, length, mask = self.own, len(message), self.mask
        at = own & mask
        start = 4 if length < ALIGN_FROM else (at + 67 & -64) - at
        behind = own + (start + length + 7 & -8)
        if behind > self.limit or self.given != own or not is_ordered:
            self.push(message)
            return self.publish()
        # What follows is the same, for a message that need not wait.
        words, first = self.words, HEAD_BYTES + at + start
        self.memory[first : first + length] = message
        words[RECORDS + ((behind & mask) >> 2)] = 0
        words[RECORDS + (at >> 2)] = length + 1 if start == 4 else length + 1 | ALIGNED
        self.own = self.given = behind
        if self.pairs[self.peer_pair] or self.needs_fence:
            self._notify()

    def publish(self):
        """Makes visible what is staged."""
        if self.given != self.own:
            self.words[self._header(self.own)] = 0
            is_ordered or fence()
            self.words[self._header(self.given)], self.given = self.first, self.own
            self._notify()

    def finish(self):
        """After the last message: the receiver gets Ended after all messages before."""
        self._wait_for_room(8)
        self._mark(END, 8)
        self.publish()

    def is_drained(self):
        """Whether the receiver has done with all that was published."""
        return self.words[TAKEN] == self.given & WORD

    def close(self):
        self.publish()
        super().close()

    def _make_room(self, header_bytes, length, is_aligned):
        if length > self.mask - 71:
            raise ValueError(f"{length} bytes are more than the ring holds")
        at = self.own & self.mask
        left, self.held = self.mask + 1 - at, start_of(at, header_bytes, is_aligned)
        if self.held + length > left:  # a record is in one piece: it begins at the first byte
            self._wait_for_room(left)
            self._mark(SKIP, left)
            return self._make_room(header_bytes, length, is_aligned)
        self._wait_for_room(self.held + length + 7 & -8)
        at += HEAD_BYTES + self.held
        return self.view[at : at + length]

    def _wait_for_room(self, length):
        """For so many bytes and the header behind them."""
        while self.own + length + 7 - self.seen & WORD > self.mask:
            self.publish()  # the receiver must take what is there
            self._wait()
            self.seen = self.words[ROOM]
            is_ordered or fence()
            if self.seen % 8 or self.own - self.seen & WORD > self.mask:
                raise Damaged
        self.limit = self.own + min(self.mask + 1 - (self.own & self.mask), self.seen + self.mask - 7 - self.own & WORD)

    def _mark(self, header, whole):
        """The record at `own` is written. The first header of a batch is written last, by publish()."""
        if self.given == self.own:
            self.first = header
        else:
            self.words[self._header(self.own)] = header
        self.own += whole

    def _peer_word(self):
        return ROOM


class Receiver(End):
    role = RECEIVER
    length = stride = 0  # of the messages of a run that is read; 0: of none
    last = behind = -1  # positions of its last message, and of the next record

    def _resume(self):
        super()._resume()
        taken, self.own = self.own, self.given
        # It may have been in the middle of a run: only the records say where they begin.
        while self.own != taken:
            header, done = self.words[self._header(self.own)], taken - self.own & WORD
            whole = self._whole(header)
            if done >= whole:
                self.own = self.own + whole & WORD
                continue
            start, stop, length, stride = self._parse(header)
            if not stride or not start <= done <= stop - length or (done - start) % stride:
                raise Damaged
            self._enter(header)
            self.own = taken

    def peek(self):
        """A message in place, valid until the next call; waits until there is one."""
        return self._next(self.view)

    def receive(self):
        """A message, copied."""
        return self._next(self.memory)

    def peek_run(self):
        """The messages of a run in place, or of what is left of it; one that was sent alone is a run of one. They are done with, and come
        again after a death, together."""
        first = self.peek()
        if not self.stride:
            return Run(first, len(first), len(first) or 1, 1)
        more, at = self.last - self.own & WORD, HEAD_BYTES + (self.own & self.mask)
        self.held = self.behind - self.own & WORD
        return Run(self.view[at : at + more + len(first)], len(first), self.stride, more // self.stride + 1)

    def _next(self, memory):
        self.release()
        while not self.stride:
            at = self.own & self.mask
            header = self.words[RECORDS + (at >> 2)]
            is_ordered or fence()
            start = at + 4 if header < RUN else at + 67 & -64
            stop = start + (header & LENGTH) - 1
            if start <= stop <= self.mask + 1 and not header & RUN:
                self.held = stop - at + 7 & -8
                return memory[HEAD_BYTES + start : HEAD_BYTES + stop]
            if header == 0:
                if self.given != self.own:
                    self._give_back()  # the sender may wait for more than an eighth
                self._wait()
            elif header & RUN and header < END:
                self._enter(header)
            else:
                self.held = self._whole(header)
                if header == END:
                    raise Ended
                self.release()
        self.held = self.behind - self.own & WORD if self.own == self.last else self.stride
        at = HEAD_BYTES + (self.own & self.mask)
        return memory[at : at + self.length]

    def _enter(self, header):
        """The next record is a run: its first message is the next one."""
        start, stop, self.length, self.stride = self._parse(header)
        self.last, self.behind = self.own + stop - self.length & WORD, self.own + (stop + 7 & -8) & WORD
        self.own = self.own + start & WORD

    def _is_unchanged(self):
        has_rest = self.stride and self.own + self.held & WORD != self.behind
        return not has_rest and super()._is_unchanged()

    def is_last(self):
        """Whether nothing was published after the message in hand."""
        return self._is_unchanged()

    def release(self):
        """The message in hand is done with: a receiver that is killed after this does not get it again. Asking for the next one does the
        same. Room is given back an eighth of the ring at a time."""
        if self.held:
            is_ordered or fence()
            self.words[TAKEN] = self.own = self.own + self.held & WORD
            self.held = 0
            if self.own == self.behind:
                self.stride = 0
            if self.own - self.given & WORD > self.mask >> 3:
                self._give_back()

    def close(self):
        self.release()
        self._give_back()
        super().close()

    def _give_back(self):
        """Up to a record: what is done with of a run is found from the run's header."""
        if self.stride:
            return
        is_ordered or fence()
        self.words[ROOM] = self.given = self.own
        self._notify()

    def _peer_word(self):
        return self._header(self.own + self.held)


def offer(socket, capacity, kind, wait=FUTEX):
    """Makes a ring without a name, opens its end of this kind (Sender, Receiver), and sends the other one over a Unix socket."""
    file = os.memfd_create("ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    # Not inherited, and never block.
    events = [libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK) for _ in range(2)]
    end = kind(file, capacity, wait, events)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    sockets.send_fds(socket, [bytes([1 - kind.role])], [file, *events])
    return end


def accept(socket, wait=FUTEX):
    """Opens the end that was offered: a Sender or a Receiver."""
    role, files, _, _ = sockets.recv_fds(socket, 1, 3)
    if not role or len(files) != 3:
        raise EOFError("no ring was offered")
    shared, peer, own = files
    if not fcntl.fcntl(shared, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
        raise OSError(errno.EPROTO, "the other process could shorten this memory")
    file = os.open(f"/proc/self/fd/{shared}", os.O_RDWR | os.O_CLOEXEC)  # a description of its own, for a lock of its own
    os.close(shared)
    return (Sender, Receiver)[role[0] & 1](file, 0, wait, (own, peer))
