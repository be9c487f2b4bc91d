//! Programs that hang, each for one known reason.

use super::*;

/// A script of bash, the cause, the program that waits, and one of those that could end it.
pub(super) struct Hangs(pub(super) WhyCause, &'static str, &'static str, pub(super) &'static str);

pub(super) const PROGRAMS: &[Hangs] = &[
    Hangs(WhyCause::DaemonHolds, "cat", "sleep", "{ echo started; sleep 100 & } | cat"),
    Hangs(WhyCause::DaemonHolds, "bash", "sleep", "v=$(echo ready; sleep 100 & ); echo $v"),
    Hangs(
        WhyCause::DaemonHolds,
        "python3",
        "sleep",
        "exec python3 -c 'import subprocess as s; s.run([\"bash\", \"-c\", \"sleep 100 >/dev/null </dev/null &\"], capture_output=True)'",
    ),
    Hangs(
        WhyCause::DaemonHolds,
        "python3",
        "sleep",
        "exec python3 -c 'import subprocess as s; s.run(\"sleep 100 & echo hi\", shell=True, capture_output=True)'",
    ),
    Hangs(
        WhyCause::DeadlockStderr,
        "seq",
        "python3",
        "exec python3 -c '
import subprocess as s
p = s.Popen(\"seq 100000 >&2; seq 5\", shell=True, stdout=-1, stderr=-1)
p.stdout.read(); p.stderr.read()'",
    ),
    Hangs(
        WhyCause::Lock,
        "python3",
        "python3",
        "exec python3 -c '
import fcntl, os, time
f = open(\"l\", \"a\"); fcntl.lockf(f, fcntl.LOCK_EX)
if os.fork() == 0:
    fcntl.lockf(open(\"l\", \"a\"), fcntl.LOCK_EX)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::DeadlockInput,
        "bash",
        "sed",
        "coproc sed s/a/b/; echo a >&${COPROC[1]}; read -r x <&${COPROC[0]}",
    ),
    Hangs(
        WhyCause::CopyHeld,
        "cat",
        "sleep",
        "exec python3 -c '
import subprocess, os
r, w = os.pipe()
a = subprocess.Popen([\"cat\"], stdin=r); os.close(r)
os.set_inheritable(w, True)
b = subprocess.Popen([\"sleep\", \"100\"], close_fds=False)
os.close(w); a.wait()'",
    ),
    Hangs(
        WhyCause::Deadlock,
        "python3",
        "cat",
        "exec python3 -c '
import subprocess
p = subprocess.Popen([\"cat\"], stdin=-1, stdout=-1)
p.stdin.write(b\"x\" * 300000)'",
    ),
    Hangs(
        WhyCause::DeadlockInput,
        "python3",
        "grep",
        "exec python3 -c 'import subprocess as s; s.Popen([\"grep\", \"x\"], stdin=-1, stdout=-1).stdout.read()'",
    ),
    Hangs(
        WhyCause::DeadlockStderr,
        "perl",
        "python3",
        "exec python3 -c '
import subprocess
p = subprocess.Popen([\"perl\", \"-e\", \"print STDERR q(e)x100000\"], stdout=-1, stderr=-1)
p.stdout.read(); p.stderr.read()'",
    ),
    Hangs(
        WhyCause::DeadlockChild,
        "python3",
        "seq",
        "exec python3 -c 'import subprocess as s; s.Popen([\"seq\", \"100000\"], stdout=-1).wait()'",
    ),
    Hangs(
        WhyCause::ParentHolds,
        "sort",
        "python3",
        "exec python3 -c 'import subprocess as s; s.Popen([\"sort\"], stdin=-1).wait()'",
    ),
    Hangs(
        WhyCause::SelfHeld,
        "python3",
        "",
        "exec python3 -c '
import os
r, w = os.pipe()
if os.fork() == 0:
    while os.read(r, 100): pass
    os._exit(0)
os.close(w); os.wait()'",
    ),
    Hangs(WhyCause::SelfHeld, "cat", "bash", "mkfifo f; exec 3<>f; cat <&3 | sort"),
    Hangs(
        WhyCause::SelfFull,
        "python3",
        "",
        "exec python3 -c 'import os; r, w = os.pipe(); os.write(w, b\"x\" * 100000)'",
    ),
    Hangs(WhyCause::FifoOpen, "cat", "", "mkfifo f; cat f; :"),
    Hangs(WhyCause::FifoOpen, "bash", "", "mkfifo f; echo hello >f"),
    Hangs(WhyCause::Lock, "flock", "sleep", "( flock 9; sleep 100 & ) 9>l; flock l true; :"),
    Hangs(
        WhyCause::Stopped,
        "sleep",
        "",
        "sleep 100 & until [ \"$(</proc/$!/comm)\" = sleep ]; do :; done; kill -STOP $!; wait",
    ),
    Hangs(
        WhyCause::ReaderLeft,
        "sed",
        "sleep",
        "(echo hello; exec sleep 100) | sed -u s/x/y/ | grep -m1 hello; :",
    ),
    Hangs(
        WhyCause::SigpipeIgnored,
        "bash",
        "",
        "trap '' PIPE; (while :; do echo x 2>/dev/null; sleep 0.1; done) | head -n1; :",
    ),
    Hangs(WhyCause::ReaderSleeps, "yes", "sleep", "yes | sleep 100"),
    Hangs(
        WhyCause::HeldInBuffer,
        "grep",
        "cut",
        "for i in {1..2000}; do echo \"GET $i\"; sleep 0.5; done | grep GET | cut -c5-",
    ),
    Hangs(
        WhyCause::LoopInput,
        "cat",
        "bash",
        "(seq 5; exec sleep 100) | while read -r host; do cat >/dev/null; done",
    ),
    // Programs of the recipe have the jobserver open.
    Hangs(
        WhyCause::TokensLost,
        "make",
        "",
        "cat >take.py <<'P'
import os, re
m = re.search(r'--jobserver-(?:auth|fds)=(\\S+)', os.environ['MAKEFLAGS']).group(1)
os.read(os.open(m[5:], os.O_RDONLY) if m.startswith('fifo:') else int(m.split(',')[0]), 3)
P
printf 'all: take a\\ntake: ; +@python3 take.py\\na: take ; +@sleep 100 | cat\\n' >Makefile
exec env -u MAKEFLAGS make -j4",
    ),
    // The name of the process is that of the script.
    Hangs(
        WhyCause::LoopInput,
        "cat",
        "hosts",
        "printf '#!/bin/bash\\n(seq 5; while :; do sleep 3; done) | while read -r host; do cat >/dev/null; done' >hosts
chmod +x hosts; ./hosts",
    ),
    Hangs(
        WhyCause::LoopInput,
        "cat",
        "bash",
        "(seq 5; while :; do sleep 3; done) | bash -c 'while read -r host; do cat >/dev/null; done'",
    ),
    Hangs(
        WhyCause::SmallPipe,
        "python3",
        "python3",
        "exec python3 -c '
import os, fcntl, time
r, w = os.pipe(); fcntl.fcntl(w, 1031, 4096)
if os.fork() == 0:
    os.close(r); os.write(w, b\"t\" * 4096); os.write(w, b\"+\"); os._exit(0)
os.close(w); os.read(r, 4000); time.sleep(100)'",
    ),
    Hangs(
        WhyCause::TerminalFull,
        "seq",
        "python3",
        "exec python3 -c '
import pty, os, time
pid, fd = pty.fork()
if pid == 0: os.execlp(\"seq\", \"seq\", \"100000\")
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::TerminalInput,
        "sort",
        "python3",
        "exec python3 -c '
import pty, os, time
pid, fd = pty.fork()
if pid == 0: os.execlp(\"sort\", \"sort\")
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::TerminalKey,
        "less",
        "",
        "exec python3 -c '
import pty, os
pid, fd = pty.fork()
if pid == 0: os.environ[\"TERM\"] = \"xterm\"; os.execlp(\"bash\", \"bash\", \"-c\", \"seq 1000000 | less\")
while 1: os.read(fd, 1000)'",
    ),
    Hangs(
        WhyCause::ListenQueue,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(1)
for i in range(4):
    if os.fork() == 0:
        k = socket.socket(socket.AF_UNIX); k.connect(\"s\"); k.recv(10); os._exit(0)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::DatagramQueue,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(\"s\")
if os.fork() == 0:
    k = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.close(); k.connect(\"s\")
    while 1: k.send(b\"<13>message\")
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::ReaderSleeps,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s, k = socket.socketpair()
if os.fork() == 0:
    k.close()
    while 1: s.sendall(b\"x\" * 4096)
s.close(); time.sleep(100)'",
    ),
    Hangs(
        WhyCause::PeerSilent,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(1)
if os.fork() == 0:
    c, _ = s.accept(); time.sleep(100); os._exit(0)
s.close()
if os.fork() == 0:
    k = socket.socket(socket.AF_UNIX); k.connect(\"s\"); k.recv(1); os._exit(0)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::PeerSilent,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, time
s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()
if os.fork() == 0:
    k = socket.create_connection(s.getsockname()); s.close(); k.recv(1)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::PeerSilent,
        "python3",
        "python3",
        "exec python3 -c '
import socket, os, select
s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen()
if os.fork() == 0:
    k = socket.socket(socket.AF_UNIX); k.connect(\"s\"); s.close(); k.send(b\"request\"); k.recv(1)
c, _ = s.accept(); p = select.poll(); p.register(s); p.poll()'",
    ),
    Hangs(
        WhyCause::FifoBusy,
        "python3",
        "",
        "mkfifo f; exec python3 -c '
import os, select
r = os.open(\"f\", os.O_RDONLY | os.O_NONBLOCK); w = os.open(\"f\", os.O_WRONLY); os.close(w)
p = select.poll(); p.register(r, select.POLLIN)
while 1:
    p.poll(); os.read(r, 100)'",
    ),
    Hangs(
        WhyCause::NonBlocking,
        "python3",
        "",
        "sleep 100 | python3 -c '
import os, fcntl
fcntl.fcntl(0, fcntl.F_SETFL, os.O_NONBLOCK)
while 1:
    try: os.read(0, 1)
    except BlockingIOError: pass'",
    ),
    Hangs(WhyCause::TwoReaders, "cat", "sed", "mkfifo f; cat f & sed p f & exec 3>f; sleep 100"),
    Hangs(
        WhyCause::Lock,
        "python3",
        "python3",
        "exec python3 -c '
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = open(\"l\", \"w\"); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
if os.fork() == 0:
    f.close(); open(\"l\"); os._exit(0)
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::MutexLeft,
        "python3",
        "",
        "exec python3 -c '
import ctypes, os, threading, time
libc = ctypes.CDLL(None); mutex = ctypes.create_string_buffer(64)
def lock(): libc.pthread_mutex_lock(mutex); time.sleep(100)
threading.Thread(target=lock, daemon=True).start(); time.sleep(0.3)
if os.fork() == 0: libc.pthread_mutex_lock(mutex)
os.wait()'",
    ),
    Hangs(
        WhyCause::DeadlockThreads,
        "python3",
        "",
        "exec python3 -c 'import threading; l = threading.Lock(); l.acquire(); l.acquire()'",
    ),
    Hangs(
        WhyCause::DeadlockThreads,
        "python3",
        "",
        "exec python3 -c '
import ctypes, threading, time
libc = ctypes.CDLL(None); mutexes = [ctypes.create_string_buffer(64) for _ in range(2)]
both = threading.Barrier(2)
def lock(first, second):
    libc.pthread_mutex_lock(first); both.wait(); libc.pthread_mutex_lock(second)
threading.Thread(target=lock, args=mutexes).start(); threading.Thread(target=lock, args=mutexes[::-1]).start()
time.sleep(100)'",
    ),
    Hangs(
        WhyCause::Mutex,
        "python3",
        "python3",
        "exec python3 -c '
import ctypes, threading, time
libc = ctypes.CDLL(None); mutex = ctypes.create_string_buffer(64)
def lock(): libc.pthread_mutex_lock(mutex); time.sleep(100)
threading.Thread(target=lock, daemon=True).start(); time.sleep(0.3); lock()'",
    ),
    Hangs(
        WhyCause::DaemonHolds,
        "python3",
        "sleep",
        "{ echo started; sleep 100 & } | python3 -c '
import os, select
p = select.poll(); p.register(0, select.POLLIN)
while not p.poll(200) or os.read(0, 100): pass'",
    ),
    Hangs(
        WhyCause::MayHold,
        "python3",
        "cat",
        "env -u PYTHONUNBUFFERED python3 -c '
import time
while 1: print(\"tick\"); time.sleep(0.2)' | cat",
    ),
    Hangs(
        WhyCause::EndOfFile,
        "python3",
        "",
        "exec python3 -c '
import os
f = os.open(\"l\", os.O_RDWR | os.O_CREAT); os.write(f, b\"x\" * 100)
o = os.open(\"o\", os.O_WRONLY | os.O_CREAT)
while 1: os.sendfile(o, f, 100, 900)'",
    ),
    Hangs(
        WhyCause::TerminalQuestion,
        "bash",
        "",
        "exec python3 -c '
import pty, os
pid, fd = pty.fork()
if pid == 0: os.execlp(\"bash\", \"bash\", \"-c\", \"read -p Continue? x\")
while 1: os.read(fd, 1000)'",
    ),
    Hangs(
        WhyCause::Zombie,
        "python3",
        "python3",
        "exec python3 -c 'import os, time; os.fork() or os._exit(0); time.sleep(100)'",
    ),
    Hangs(
        WhyCause::CloseWait,
        "python3",
        "",
        "exec python3 -c '
import socket, os, time
s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()
r, w = os.pipe()
if os.fork() == 0:
    k = socket.create_connection(s.getsockname()); s.close(); k.recv(9); os.read(r, 1); os._exit(0)
c, _ = s.accept(); c.send(b\"hello\"); c.close(); time.sleep(100)'",
    ),
    Hangs(
        WhyCause::DatagramsDropped,
        "python3",
        "",
        "exec python3 -c '
import os, socket
s = socket.socket(type=socket.SOCK_DGRAM); s.bind((\"127.0.0.1\", 0)); k = socket.socket(type=socket.SOCK_DGRAM)
for _ in range(5000): k.sendto(b\"x\" * 500, s.getsockname())
while 1: s.recv(1000)'",
    ),
    Hangs(
        WhyCause::DescriptorLeak,
        "python3",
        "",
        "exec python3 -c 'import os, time; k = [os.pipe() for _ in range(500)]; time.sleep(100)'",
    ),
    // That it may hold output back, too, is less certain.
    Hangs(
        WhyCause::DescriptorLeak,
        "python3",
        "",
        "env -u PYTHONUNBUFFERED python3 -c '
import os, time
time.sleep(4); k = [os.pipe() for _ in range(500)]
while 1: time.sleep(9)' | cat",
    ),
];

/// Expected: the cause is named, with who waits and who could end it.
#[test]
fn each_program_that_hangs_has_its_cause() {
    std::thread::scope(|threads| {
        for Hangs(cause, who, by, script) in PROGRAMS {
            threads.spawn(move || {
                if let Some(program) = missing(script) {
                    return skip(&format!("no {program}: {}", cause.name()));
                }
                let scene = Scene::new(script);
                let answer = answer(&scene, *cause);
                assert_eq!(answer.who.command, *who, "{script}: {answer:#?}");
                let named = by.is_empty() || answer.by.iter().any(|process| process.command == *by);
                assert!(named, "{script}: no {by} in {answer:#?}");
                let said = report::why::sentence(&answer);
                assert!(!said.contains(['{', '}']) && !said.contains(" ["), "{said}");
            });
        }
    });
}
