//! Programs that are well: they work, sleep, or wait as they should.

use super::*;

/// A client that waits for messages, and a server that watches all connections and does something ten times a second.
const WATCHED_TCP: &str = "exec python3 -c '
import os, select, socket
s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()
if os.fork() == 0:
    k = socket.create_connection(s.getsockname()); s.close(); k.send(b\"subscribe\"); k.recv(9)
c, _ = s.accept(); c.recv(9); e = select.epoll(); e.register(s, 1); e.register(c, 1)
while 1: e.poll(0.1); open(\"/proc/self/stat\").read()'";
const WATCHED_UNIX: &str = "exec python3 -c '
import os, select, socket
s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen()
if os.fork() == 0:
    k = socket.socket(socket.AF_UNIX); k.connect(\"s\"); s.close(); k.recv(9)
c, _ = s.accept(); select.select([s, c], [], [])'";

pub(super) const PROGRAMS: &[(WhyCause, &str)] = &[
    (WhyCause::Sleeps, "exec sleep 100"),
    (WhyCause::Sleeps, "sleep 100 | cat"),
    (WhyCause::Sleeps, "while :; do sleep 30; done"),
    (WhyCause::Sleeps, "printf 'all: a b c d\\na b c d: ; @sleep 100\\n' >Makefile; make -j3"),
    (
        WhyCause::Rests,
        "exec python3 -c '
import os, select
r, w = os.pipe(); p = select.poll(); p.register(r, select.POLLIN); p.poll()'",
    ),
    (WhyCause::FifoBoth, "mkfifo f; exec 3<>f; while read -r -u3 line; do :; done"),
    (
        WhyCause::Rests,
        "exec python3 -c '
import fcntl, os, socket, time
s = socket.socket(); s.listen()
for i in range(3):
    if os.fork() == 0:
        f = open(\"l\", \"a\"); fcntl.lockf(f, fcntl.LOCK_EX); s.accept()
os.wait()'",
    ),
    (
        WhyCause::Sleeps,
        "yes | python3 -c '
import os, time
while 1: os.read(0, 100000); time.sleep(2)'",
    ),
    (
        WhyCause::Works,
        "exec python3 -c '
import threading
while not threading.Event().wait(0.2): pass'",
    ),
    (
        WhyCause::Rests,
        "exec python3 -c '
import selectors, subprocess as s
p = s.Popen([\"bash\"], stdin=-1, stdout=-1, stderr=-1); x = selectors.DefaultSelector()
x.register(p.stdout, 1); x.register(p.stderr, 1); x.select()'",
    ),
    (
        WhyCause::Rests,
        "{ python3 -c 'import socket; s = socket.socket(); s.listen(); s.accept()' & } | cat >>log",
    ),
    (WhyCause::ByteReads, "yes | while read -r line; do :; done"),
    (WhyCause::Rests, "echo x >log; tail -f log | cat"),
    (WhyCause::Rests, "exec python3 -c 'import socket; s = socket.socket(); s.listen(); s.accept()'"),
    (
        WhyCause::Rests,
        "exec python3 -c 'import asyncio
async def serve(): await (await asyncio.start_server(print, \"127.0.0.1\", 0)).serve_forever()
asyncio.run(serve())'",
    ),
    (
        WhyCause::Rests,
        "exec python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind((\"127.0.0.1\", 0)); s.recv(9)'",
    ),
    (
        WhyCause::Rests,
        "exec python3 -c '
import os, select, socket
c, s = socket.socketpair(); l = socket.socket(socket.AF_UNIX); l.bind(\"s\"); l.listen()
if os.fork() == 0:
    os.setsid(); os.fork() and os._exit(0)
    c.close(); select.select([s, l], [], [])
os.wait(); s.close(); l.close(); p = select.poll(); p.register(c, 1); p.poll()'",
    ),
    (WhyCause::PeerWaits, WATCHED_TCP),
    (WhyCause::PeerWaits, WATCHED_UNIX),
    (WhyCause::Rests, "exec python3 -c 'import signal; signal.pause()'"),
    // A client that takes slowly what its server sends.
    (
        WhyCause::Rests,
        "exec python3 -c '
import os, select, socket
a, b = socket.socketpair(); r, w = os.pipe()
if os.fork() == 0:
    b.close(); p = select.poll(); p.register(r, 1)
    while p.poll(2500) == []: a.recv(1000)
a.close()
while b.send(b\"x\" * 1000): pass'",
    ),
    // An editor by another name, which has a library for whole screens, too; and a debugger.
    (
        WhyCause::Rests,
        "ln -s \"$(command -v nano)\" editor; exec python3 -c '
import pty, os
pid, fd = pty.fork()
if pid == 0: os.execl(\"editor\", \"editor\", \"f\")
while 1: os.read(fd, 1000)'",
    ),
    (
        WhyCause::Rests,
        "exec python3 -c '
import pty, os
pid, fd = pty.fork()
if pid == 0: os.execlp(\"perl\", \"perl\", \"-de\", \"1\")
while 1: os.read(fd, 1000)'",
    ),
    (
        WhyCause::Rests,
        "exec python3 -c '
import pty, os, time, select
pid, fd = pty.fork()
if pid == 0: os.execlp(\"bash\", \"bash\", \"--norc\", \"-i\")
while 1: os.read(fd, 1000)'",
    ),
];

/// Expected: no alarm.
#[test]
fn programs_that_are_well_are_not_stuck() {
    std::thread::scope(|threads| {
        for (cause, script) in PROGRAMS {
            threads.spawn(move || {
                if let Some(program) = missing(script) {
                    return skip(&format!("no {program}: {}", cause.name()));
                }
                let scene = Scene::new(script);
                let answer = answer(&scene, *cause);
                assert!(report::why::sentence(&answer).contains("is not stuck"), "{script}: {answer:#?}");
            });
        }
    });
}

/// Expected: what computes is said to compute, or, on a busy machine, to wait for a CPU.
#[test]
fn a_program_that_computes_is_not_stuck() {
    let scene = Scene::new("while :; do :; done");
    let (record, status) = why(&[&scene.pid().to_string()]);
    let cause = record.answers[0].cause;
    let causes = [WhyCause::Computes, WhyCause::Queues, WhyCause::CpuLimit, WhyCause::Works];
    assert!(causes.contains(&cause), "{record:#?}");
    assert_eq!(status, 1);
}
