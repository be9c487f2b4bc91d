"""ring.py: whole messages through shared memory, from one sender to one receiver (processes or containers).
Copy it: MIT or Apache-2.0, as hosepipe is. Python 3.9 or later, Linux, no package. The bytes in memory are described in LAYOUT.md.

    sender = Sender("/dev/shm/ring", 1 << 20)          receiver = Receiver("/dev/shm/ring", 1 << 20)
    sender.send(b"hello")                              message = receiver.receive()
    sender.finish()                                    receiver.receive()  # raises Ended

An end that was killed at any instruction loses nothing that was published; a new end with the same role goes on where it stopped, and
only the message that a killed receiver had in hand comes a second time.
"""
import array
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import select
import socket as sockets
import stat
import struct
import threading
import time

SPIN, FUTEX, EVENTFD, NOWAIT = range(4)  # what an end does that must wait
MAGIC, VERSION, HEAD_BYTES = int.from_bytes(b"ring", "little"), 1, 4096
WRITTEN, ROOM, TAKEN, SLEEPERS = 128, 256, 384, (512, 640)  # the words in the head
SKIP, END = 0xFFFFFFFF, 0xFFFFFFFE  # in place of a length
ALIGNED = 1 << 31  # beside a length: the message begins at the next multiple of 64, and not right behind
ALIGN_FROM = 1024  # messages of at least so many bytes begin at a multiple of 64
POLLS, SPIN_POLLS, SLEEP_MS = 20, 20000, 250
SENDER, RECEIVER, SETUP = 0, 1, 2  # roles, and the bytes of the file that are locked
F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW = 36, 37, 38
LOCK, HEADER = struct.Struct("hhqqi"), struct.Struct("=I")
CALLS = {"x86_64": (202, 324), "i686": (240, 375), "ppc64le": (221, 365), "s390x": (238, 356)}
SYS_FUTEX, SYS_MEMBARRIER = CALLS.get(platform.machine(), (98, 283))
FUTEX_WAIT, FUTEX_WAKE, MEMBARRIER, REGISTER_MEMBARRIER = 0, 1, 2, 4
libc = ctypes.CDLL(None, use_errno=True)


class Limit(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


class Ended(Exception):
    """The sender has finished."""


class Absent(Exception):
    """This end waits, and the other one is not there: call again to go on waiting."""


class Again(Exception):
    """This end never waits."""


class Damaged(Exception):
    """The other end wrote what makes no sense."""


def lock(file, command, byte, kind=fcntl.F_WRLCK):
    return LOCK.unpack_from(fcntl.fcntl(file, command, LOCK.pack(kind, 0, byte, 1, 0)))[0]


def is_capacity(capacity):
    return 4096 <= capacity <= 1 << 30 and capacity & (capacity - 1) == 0


# A 32-bit word is read and written by one instruction. On x86 nothing more is needed: stores and loads keep their order there. Elsewhere
# a lock that is released and taken again is a fence.
gate = threading.Lock()
gate.acquire()
if platform.machine() in ("x86_64", "i686"):
    fence = None
else:
    def fence():
        gate.release()
        gate.acquire()


class End:
    """What both ends have. One thread at a time."""

    def __init__(self, path, capacity=0, wait=FUTEX, events=None):
        while True:
            if isinstance(path, int):
                self.file = path
            else:
                flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
                try:
                    self.file = os.open(path, flags)
                except FileNotFoundError:
                    self.file = os.open(path, flags | os.O_CREAT, 0o600)
            try:
                self._open(capacity)
            except BaseException:
                os.close(self.file)
                raise
            if isinstance(path, int) or os.fstat(self.file).st_nlink > 0:
                break
            os.close(self.file)  # it was removed before this end had its lock
        self.wait, self.events, self.held = wait, events, 0
        self.has_membarrier = libc.syscall(SYS_MEMBARRIER, REGISTER_MEMBARRIER, 0, 0) == 0
        word = lambda offset: ctypes.c_uint32.from_buffer(self.memory, offset)
        self.written, self.room, self.taken = word(WRITTEN), word(ROOM), word(TAKEN)
        self.sleeps, self.peer_sleeps = word(SLEEPERS[self.role]), word(SLEEPERS[1 - self.role])
        needs_fence, self.sleeps.value = word(SLEEPERS[self.role] + 4), 0
        needs_fence.value = 0 if self.has_membarrier else 1
        # How the other end sleeps, and whether it needs a fence, in one.
        self.peer_line = ctypes.c_uint64.from_buffer(self.memory, SLEEPERS[1 - self.role])
        written, room, taken = self.written.value, self.room.value, self.taken.value
        if self.role == SENDER:
            self.own, self.given, self.seen, self.word, self.peer_word = written, written, room, self.written, self.room
        else:
            self.own, self.given, self.seen, self.word, self.peer_word = taken, room, taken, self.room, self.written
        if (self.own | self.given | self.seen) % 8 or (written - (room if self.role == SENDER else taken)) % 2**32 > self.capacity:
            raise Damaged(path)

    def _open(self, capacity):
        try:
            lock(self.file, F_OFD_SETLK, self.role)
        except (BlockingIOError, PermissionError):
            raise OSError(errno.EBUSY, "such an end is alive") from None
        lock(self.file, F_OFD_SETLKW, SETUP)  # a setup is repeated by the next end if this one dies in it
        found = os.fstat(self.file)
        words = os.pread(self.file, 16, 0).ljust(16, b"\0") if stat.S_ISREG(found.st_mode) else b"no regular file!"
        magic, version, head_bytes, in_file = struct.unpack("=4I", words)
        if magic == 0 and not is_capacity(capacity):
            raise ValueError("a ring holds a power of two of bytes, 4096 to 2^30")
        self.capacity = in_file if magic else capacity
        whole = HEAD_BYTES + self.capacity
        if magic == 0:
            makes_sense = found.st_size <= whole and version <= VERSION and head_bytes <= HEAD_BYTES
        else:
            makes_sense = (magic, version, head_bytes) == (MAGIC, VERSION, HEAD_BYTES) and is_capacity(in_file) and found.st_size >= whole
        if not makes_sense:
            raise OSError(errno.EPROTO, "it is no ring of this version")
        if magic == 0:
            os.posix_fallocate(self.file, 0, whole)  # a full file system is an error here, and a signal later
        self.memory = mmap.mmap(self.file, whole)
        self.view = memoryview(self.memory)
        if magic == 0:
            self.memory[4:16] = struct.pack("=3I", VERSION, HEAD_BYTES, self.capacity)
            ctypes.c_uint32.from_buffer(self.memory, 0).value = MAGIC
        lock(self.file, F_OFD_SETLK, SETUP, fcntl.F_UNLCK)

    def peer_is_there(self):
        """The kernel releases the lock of an end that dies, whatever the cause, and in any container."""
        return lock(self.file, F_OFD_GETLK, 1 - self.role) != fcntl.F_UNLCK

    def _tell(self):
        """Either this end sees that the other one sleeps, or that one sees the new position: its membarrier(2) is a fence here as well."""
        if fence:
            fence()
        self.word.value = self.given = self.own
        if self.peer_line.value or not self.has_membarrier:
            self._wake()

    def _wake(self):
        gate.release()
        gate.acquire()
        how = self.peer_sleeps.value
        if how:
            self.peer_sleeps.value = 0
            if how == 1:
                libc.syscall(SYS_FUTEX, ctypes.byref(self.peer_sleeps), FUTEX_WAKE, 1, None)
            elif self.events:
                os.write(self.events[1], struct.pack("=Q", 1))

    def arm(self):
        """Before a poll of event(): true if there is nothing to do now, and the other end will write to it."""
        return (self.role == SENDER or (self.own + self.held) % 2**32 == self.seen) and self._announce(2)

    def event(self):
        """The descriptor to poll; each wake-up needs one read of 8 bytes."""
        return self.events[0]

    def _announce(self, how):
        """Says that this end sleeps; false if the word has changed, and it must not."""
        self.sleeps.value = how
        gate.release()
        gate.acquire()
        if self.has_membarrier:
            libc.syscall(SYS_MEMBARRIER, MEMBARRIER, 0, 0)
        return self.peer_word.value == self.seen

    def _sleep(self):
        if self.wait == EVENTFD and self.events:
            if self._announce(2) and select.select([self.events[0]], [], [], SLEEP_MS / 1000)[0]:
                os.read(self.events[0], 8)
        elif self._announce(1):
            libc.syscall(SYS_FUTEX, ctypes.byref(self.sleeps), FUTEX_WAIT, 1, ctypes.byref(Limit(0, SLEEP_MS * 1000000)))
        self.sleeps.value = 0

    def _wait(self):
        """Waits until the other end's word differs from `seen`, and reads it."""
        absent = False
        while True:
            for looks in range(1 if self.wait == NOWAIT else SPIN_POLLS if self.wait == SPIN else POLLS):
                if looks % 64 == 63:
                    time.sleep(0)  # another thread of this program may have to run
                now = self.peer_word.value
                if now != self.seen:
                    if fence:
                        fence()
                    self.seen = now
                    if (self.own - now if self.role == SENDER else now - self.own) % 2**32 > self.capacity or now % 8:
                        raise Damaged
                    return
            if self.wait == NOWAIT:
                raise Again
            if absent:
                raise Absent
            if self.wait != SPIN:
                self._sleep()
            # What died may have published before: one more look.
            absent = self.peer_word.value == self.seen and not self.peer_is_there()
            if absent and self.wait == SPIN:
                time.sleep(0.001)  # none is there whose answer could be late

    def close(self):
        """Lets go of the ring, and of the message in hand. The file stays. (So does the mapping, until the program ends.)"""
        os.close(self.file)


class Sender(End):
    role = SENDER

    def reserve(self, length):
        """Room for a message of up to `length` bytes, to be written in place; waits until there is. Then stage() or commit()."""
        if length > self.capacity - 64:
            raise ValueError(f"a message of {length} bytes is larger than the ring")
        at = self.own & self.capacity - 1
        start = 4 if length < ALIGN_FROM else (at + 67 & -64) - at
        if at + start + length > self.capacity:  # a record is in one piece: it begins at the first byte
            self._wait_for_room(self.capacity - at)
            self._mark(SKIP)
            self.own = self.own + self.capacity - at & SKIP
            at, start = 0, 4 if length < ALIGN_FROM else 64
        self._wait_for_room(start + length + 7 & -8)
        self.held = start
        at += HEAD_BYTES + start
        return self.view[at : at + length]

    def stage(self, length):
        """The reserved message is written, and this long; visible after publish()."""
        self._mark(length | ALIGNED if self.held > 4 else length)
        self.own = self.own + (self.held + length + 7 & -8) & SKIP

    def commit(self, length):
        """The same, visible at once."""
        self.stage(length)
        self._tell()

    def push(self, message):
        """Copies a message into the ring; visible after publish()."""
        self.reserve(len(message))[:] = message
        self.stage(len(message))

    def send(self, message):
        """The same, visible at once."""
        own, length = self.own, len(message)
        at = own & self.capacity - 1
        start = 4 if length < ALIGN_FROM else (at + 67 & -64) - at
        next_one = own + (start + length + 7 & -8)
        if at + start + length > self.capacity or next_one - self.seen & SKIP > self.capacity:
            self.push(message)  # what follows is the same, for a message that need not wait
        else:
            HEADER.pack_into(self.memory, HEAD_BYTES + at, length | ALIGNED if start > 4 else length)
            at += HEAD_BYTES + start
            self.memory[at : at + length] = message
            self.own = next_one & SKIP
        self._tell()

    def publish(self):
        """Makes visible what is staged."""
        if self.given != self.own:
            self._tell()

    def finish(self):
        """After the last message: the receiver gets Ended after all messages before."""
        self._wait_for_room(8)
        self._mark(END)
        self.own = self.own + 8 & SKIP
        self._tell()

    def is_drained(self):
        """Whether the receiver has done with all that was published."""
        return self.taken.value == self.given

    def close(self):
        self.publish()
        super().close()

    def _wait_for_room(self, length):
        while (self.own + length - self.seen) % 2**32 > self.capacity:
            self.publish()  # the receiver must take what is there
            self._wait()

    def _mark(self, word):
        HEADER.pack_into(self.memory, HEAD_BYTES + (self.own & self.capacity - 1), word)


class Receiver(End):
    role = RECEIVER

    def peek(self):
        """A message in place, valid until the next call; waits until there is one."""
        return self._next(self.view)

    def receive(self):
        """A message, copied."""
        return self._next(self.memory)

    def _next(self, memory):
        self.release()
        while True:
            if self.own == self.seen:
                if self.written.value == self.own and self.given != self.own:
                    self._tell()  # the sender may wait for more than an eighth
                self._wait()
            at = self.own & self.capacity - 1
            (word,) = HEADER.unpack_from(self.memory, HEAD_BYTES + at)
            length, start = (word & ~ALIGNED, (at + 67 & -64) - at) if word & ALIGNED else (word, 4)
            left = min(self.capacity - at, (self.seen - self.own) % 2**32)
            if word < END and start + length <= left:
                self.held = start + length + 7 & -8
                at += HEAD_BYTES + start
                return memory[at : at + length]
            if word != END and (word != SKIP or left != self.capacity - at):
                raise Damaged
            self.held = 8 if word == END else left
            if word == END:
                raise Ended
            self.release()

    def is_last(self):
        """Whether nothing was published after the message in hand."""
        return self.written.value == self.own + self.held & SKIP

    def release(self):
        """The message in hand is done with: a receiver that is killed after this does not get it again. Asking for the next one does the
        same. Room is given back an eighth of the ring at a time."""
        if self.held:
            if fence:
                fence()
            self.taken.value = self.own = self.own + self.held & SKIP
            self.held = 0
            if (self.own - self.given) % 2**32 >= self.capacity // 8:
                self._tell()

    def close(self):
        self.release()
        self._tell()
        super().close()


def offer(socket, capacity, kind, wait=FUTEX):
    """Makes a ring without a name, opens its end of this kind (Sender, Receiver), and sends the other one over a Unix socket."""
    file = os.memfd_create("ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    # Not inherited, and never block.
    events = [libc.eventfd(0, os.O_CLOEXEC | os.O_NONBLOCK) for _ in range(2)]
    end = kind(file, capacity, wait, events)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    socket.sendmsg([bytes([1 - kind.role])], [(sockets.SOL_SOCKET, sockets.SCM_RIGHTS, array.array("i", [file, *events]))])
    return end


def accept(socket, wait=FUTEX):
    """Opens the end that was offered: a Sender or a Receiver."""
    role, control, _, _ = socket.recvmsg(1, sockets.CMSG_SPACE(12))
    if not role or not control:
        raise EOFError("no ring was offered")
    shared, peer, own = array.array("i", control[0][2])
    if not fcntl.fcntl(shared, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
        raise OSError(errno.EPROTO, "the other process could shorten this memory")
    file = os.open(f"/proc/self/fd/{shared}", os.O_RDWR | os.O_CLOEXEC)  # a description of its own, for a lock of its own
    os.close(shared)
    return (Sender, Receiver)[role[0]](file, 0, wait, (own, peer))
