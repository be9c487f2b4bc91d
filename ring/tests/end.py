"""As end.c: end.py ROLE PATH ID STATE COUNT WAIT."""
import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import ring

role, path, own_id, state_path, count, wait = sys.argv[1:]
own_id, count, wait = int(own_id), int(count), int(wait)
state = os.open(state_path, os.O_RDWR | os.O_CREAT, 0o600)


def size_of(number):
    return 8 * (300 if number // 8 % 61 == 5 else 1 + number // 8 * 7 % 40)


def note(of_id, number):
    os.pwrite(state, struct.pack("=Q", number), 8 * of_id)


def say(line):
    print(line, flush=True)


def send_all(end):
    number = 0
    while count == 0 or number < count:
        size = size_of(number)
        message = struct.pack("=Q", own_id << 40 | number) * (size // 8)
        sent = 1
        try:
            if number % 16 > 7:
                run = end.reserve_run(size, 16 - number % 16)
                sent = run.count
                for at, room in enumerate(run.messages()):
                    room[:] = struct.pack("=Q", own_id << 40 | number + at) * (size // 8)
                end.commit_run(sent)
            elif number % 4 == 3:
                end.push(message)
            elif number % 4 == 2:
                end.reserve(size + 100)[:size] = message
                end.commit(size)
            else:
                end.send(message)
        except ring.Absent:
            say("absent")
            continue
        if number % 16 > 7 or number % 4 != 3:
            note(own_id, number + sent)
        number += sent
    end.publish()
    note(own_id, count)
    while True:
        try:
            end.finish()
            break
        except ring.Absent:
            pass
    while not end.is_drained() and end.peer_is_there():
        time.sleep(0.001)


def receive_all(end):
    known = os.pread(state, 8 << 16, 0)
    got = dict(enumerate(struct.unpack(f"={len(known) // 8}Q", known)))
    first, turn = True, 0
    while True:
        turn += 1
        try:
            messages = end.peek_run().messages() if turn % 3 == 2 else [end.receive() if turn % 3 else end.peek()]
        except ring.Absent:
            say("absent")
            continue
        except ring.Ended:
            say("ended")
            return
        for message in messages:
            word = int.from_bytes(message[:8], sys.byteorder)
            of_id, number = word >> 40, word & (1 << 40) - 1
            expected = got.get(of_id, 0)
            if len(message) != size_of(number) or message[8:] != message[:-8]:
                sys.exit(f"receiver: message {number} of {of_id} is torn")
            if first and expected - 8 <= number < expected:
                continue  # the message or the run that the last one had in hand
            if number != expected:
                sys.exit(f"receiver: {number} of {of_id} in place of {expected}")
            got[of_id] = number + 1
            note(of_id, number + 1)
            first = False


try:
    end = (ring.Sender if role[0] == "s" else ring.Receiver)(path, 1 << 16, wait)
except OSError as error:
    print(f"end.py: {error}", file=sys.stderr)
    sys.exit(4 if error.errno == ring.errno.EBUSY else 2)
send_all(end) if role[0] == "s" else receive_all(end)
end.close()
