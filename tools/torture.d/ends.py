"""Cases of `system-calls` that need more than one program and its outputs: a user at a terminal, a second hosepipe."""
import fcntl
import os
import pathlib
import pty
import re
import signal
import subprocess
import termios
import threading
import time


def at_a_terminal(command, typed, out, **how):
    """Runs a command in a terminal, in which what the user types waits from the beginning. Its status, and whether it left the terminal in another
    mode; what the terminal showed goes to the file."""
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    os.write(ours, typed.encode())

    def copy():
        try:
            while data := os.read(ours, 1 << 16):
                out.write(data.replace(b"\r\n", b"\n"))
        except OSError:
            pass  # the last one who had it open has ended

    shown = threading.Thread(target=copy)
    shown.start()
    try:
        status = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, timeout=60,
                                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **how).returncode
        return status, termios.tcgetattr(theirs) != before
    finally:
        os.close(theirs)
        shown.join()
        os.close(ours)


def both(command, other, folder, **how):
    """Runs two commands, the second one beside the first, each with its outputs in the folder (out, out-err, other, other-err). If one of them
    listens, the other begins when that one has said where. The statuses of both; that of the second one is None if it never began, and "hang" if
    it does not end within 20 s after the first."""
    ends, running, at = {"out": command, "other": other}, {}, None

    def begin(name):
        words = [str(word).replace("tcp://AT", f"tcp://{at}").replace("CASE/", f"{folder}/") for word in ends[name]]
        with open(folder / name, "wb") as out, open(folder / f"{name}-err", "wb") as err:
            running[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, **how)

    listens = next((name for name in ends if "--listen" in ends[name]), None)
    if listens:
        begin(listens)
        while not at and running[listens].poll() is None:
            time.sleep(0.01)
            said = re.search("^listening on (.*)\n", (folder / listens).read_text())
            at = said and said[1]
    for name in ends:
        if name not in running and (at or not listens):
            begin(name)
    try:
        status = running["out"].wait(60)
        try:
            return status, running["other"].wait(20) if "other" in running else None
        except subprocess.TimeoutExpired:
            return status, "hang"
    finally:
        for child in running.values():
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def processes_of(folder):
    """The names of the processes that have the folder in their environment, if they do not end within 6 s."""
    for _ in range(60):
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if bytes(folder) in (process / "environ").read_bytes():
                    found.append((process / "comm").read_text().strip())
            except OSError:
                pass  # it has ended
        if not found:
            break
        time.sleep(0.1)
    return found
