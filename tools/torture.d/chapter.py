"""What the chapters of tools/torture share: the hosepipe under test, runs under a deadline in a folder of their own, the judgement
of a run, and the counts that a chapter prints as `promise<TAB>tried<TAB>survived<TAB>failed<TAB>note`.

A full run keeps its counts in target/torture, by the program's hash. It ends after TORTURE_MINUTES, or when it is interrupted, and the
next one goes on where it was."""
import argparse
import atexit
import collections
import concurrent.futures
import ctypes
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HANGS_AFTER_S = 20
# A busy machine may need longer. What ends by itself within this time is counted as slow, in the note; a lost wake-up never ends.
GIVES_UP_AFTER_S = 120
BATCH = 32
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
KEPT = pathlib.Path(__file__).resolve().parent.parent.parent / "target/torture"
DETAILS_PER_PROMISE = 5
Done = collections.namedtuple("Done", "code out err hung left wall_s")


def newest_build():
    """The hosepipe that the frame names, or that cargo built last."""
    if os.environ.get("HOSEPIPE"):
        return os.path.abspath(os.environ["HOSEPIPE"])
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(root, "target"))
    builds = [os.path.join(target, profile, "hosepipe") for profile in ("debug", "release")]
    builds = [build for build in builds if os.path.exists(build)]
    if not builds:
        sys.exit("no hosepipe is built: cargo build -p hosepipe")
    return os.path.realpath(max(builds, key=os.path.getmtime))


class Chapter:
    """Counts of faults by promise."""

    def __init__(self, description, more=()):
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        full, seed = os.environ.get("TORTURE_FULL") == "1", int(os.environ.get("TORTURE_SEED", 1))
        parser.add_argument("--full", action="store_true", default=full, help="all cases, and real sizes")
        parser.add_argument("--seed", type=int, default=seed, help="which of the cases a short run takes")
        for flags, options in more:
            parser.add_argument(*flags, **options)
        self.options = parser.parse_args()
        self.full = self.options.full
        self.dice = random.Random(self.options.seed)
        self.turn, self.of_thread = threading.Lock(), threading.local()
        self.folder = tempfile.mkdtemp(prefix="torture-")
        os.chmod(self.folder, 0o755)
        # A copy that every user may run: the folder that cargo builds in may be closed to others.
        self.program = shutil.copy(newest_build(), os.path.join(self.folder, "hosepipe"))
        atexit.register(shutil.rmtree, self.folder, True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        # What a run leaves running becomes a child of this process, and is found there.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.started = set()
        key = hashlib.sha256(pathlib.Path(self.program).read_bytes()).hexdigest()[:12]
        self.kept_in = KEPT / f"{pathlib.Path(sys.argv[0]).name}-{key}.json"
        self.parts = json.loads(self.kept_in.read_text()) if self.full and self.kept_in.exists() else {}
        self.until = time.monotonic() + 60 * float(os.environ.get("TORTURE_MINUTES") or "inf")

    def part(self, work):
        """Runs a part of the chapter, unless an earlier full run has finished it, or TORTURE_ONLY (PART,PART) does not name it."""
        only = os.environ.get("TORTURE_ONLY")
        self.now = self.parts.setdefault(work.__name__, {"counts": {}, "at": 0, "ended": False, "page": ""})
        self.in_time = time.monotonic() < self.until
        if not self.now["ended"] and self.in_time and (not only or work.__name__ in only.split(",")):
            work(self)
            self.now["ended"] = self.in_time
            self.save()

    def cases(self, values):
        """Those of the values that this part has not tried, until the time is over. Each has dice of its own."""
        values = list(values)
        self.now["of"] = len(values)
        for number in range(self.now["at"], len(values)):
            self.in_time = time.monotonic() < self.until
            if not self.in_time:
                return
            self.dice = random.Random(f"{self.options.seed} {number}")
            yield values[number]
            self.now["at"] = number + 1
            self.save()

    def save(self):
        """Keeps the counts of a full run."""
        if self.full:
            with self.turn:
                text = json.dumps(self.parts, indent=1)
            self.kept_in.parent.mkdir(parents=True, exist_ok=True)
            new = self.kept_in.with_suffix(f".{os.getpid()}")
            new.write_text(text)
            os.replace(new, self.kept_in)

    def some(self, values, count, last=True):
        """All values where the run is full, otherwise so many of them; `last`: the last one always."""
        values = list(values)
        if self.full or len(values) <= count:
            return values
        kept = [len(values) - 1] if last else []
        chosen = self.dice.sample(range(len(values) - len(kept)), count - len(kept)) + kept
        return [values[index] for index in sorted(chosen)]

    def note(self, promise, tried, failures=(), note=""):
        """Adds to the counts; `failures` says each in words."""
        with self.turn:
            counts = self.now["counts"].setdefault(promise, [0, 0, ""])
            counts[0] += tried
            for failure in failures:
                counts[1] += 1
                if self.full:
                    self.now.setdefault("failures", []).append(f"{promise}: {failure}")
                if self.full or counts[1] <= DETAILS_PER_PROMISE:
                    print(f"FAILED {promise}: {failure}", file=sys.stderr, flush=True)
            counts[2] = note or counts[2]

    def check(self, promise, failure, what):
        """Counts one fault; `failure` is None or says what went wrong."""
        self.note(promise, 1, [f"{what}: {failure}"] if failure else [])

    def finish(self):
        """Prints the counts of all parts, and the document's text."""
        slow = sum(part.get("slow", 0) for part in self.parts.values())
        if slow:
            self.note("no hang", 0, note=f"{slow} runs took more than their limit on a busy machine, and ended by themselves within {GIVES_UP_AFTER_S} s")
        for part in self.parts.values():
            for promise, (tried, failed, note) in part["counts"].items():
                print(promise, tried, tried - failed, failed, note, sep="\t", flush=True)
        for name, part in self.parts.items():
            if self.full and not part["ended"]:
                print(f"not finished: {name.replace('_', ' ')}", 0, 0, 0, f"{part['at']} of {part['of']} steps" if "of" in part else "not begun", sep="\t", flush=True)
        if os.environ.get("TORTURE_PAGE"):
            pathlib.Path(os.environ["TORTURE_PAGE"]).write_text("\n".join(part["page"] for part in self.parts.values() if part["page"]))
        sys.exit(0)

    def reap(self, ended):
        """Ends the wait of processes whose parents have ended, so that they do not stay as zombies."""
        with self.turn:
            self.started.discard(ended)
            for pid in set(children(os.getpid())) - self.started:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass

    def place(self):
        return Place(self)

    def place_of_thread(self, files=None):
        """The place of this thread, made with links to the files of a folder."""
        if not hasattr(self.of_thread, "place"):
            self.of_thread.place = self.place()
            for name in os.listdir(files) if files else ():
                os.symlink(os.path.join(files, name), os.path.join(self.of_thread.place.here, name))
        return self.of_thread.place

    def side_by_side(self, work, cases):
        """`work` on each case, a few at a time; it may use this chapter's counts, which one thread changes at a time."""
        cases = list(cases)
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("TORTURE_JOBS", os.cpu_count()))) as pool:
            for batch in self.cases([cases[at : at + BATCH] for at in range(0, len(cases), BATCH)]):
                list(pool.map(work, batch))

    def page(self, text):
        """Markdown that the document shows below the counts."""
        self.now["page"] = text + "\n"


class Place:
    """A folder for runs: `here` they start in, `tmp` is their TMPDIR, `run` their XDG_RUNTIME_DIR; both must be empty afterwards."""

    def __init__(self, chapter):
        self.chapter = chapter
        self.folder = tempfile.mkdtemp(dir=chapter.folder)
        os.chmod(self.folder, 0o755)
        self.here, self.tmp, self.runtime = (os.path.join(self.folder, name) for name in ("here", "tmp", "run"))
        for folder in (self.here, self.tmp, self.runtime):
            os.mkdir(folder)
            os.chmod(folder, 0o777)
        self.marker = f"TORTURE={self.folder}"

    def start(self, argv, env=None, stdin=subprocess.DEVNULL, **more):
        """Starts a command with its output in files, in a session of its own."""
        environment = {**os.environ, "TMPDIR": self.tmp, "XDG_RUNTIME_DIR": self.runtime, "TORTURE": self.folder}
        environment.update({"RUST_BACKTRACE": "1", "NO_COLOR": "1", "TERM": "dumb", **(env or {})})
        environment = {name: value for name, value in environment.items() if value is not None}
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        with self.chapter.turn:
            child = subprocess.Popen(argv, cwd=more.pop("cwd", self.here), env=environment, stdin=stdin, stdout=out, stderr=err,
                                     start_new_session=True, **more)
            self.chapter.started.add(child.pid)
        child.files, child.began = (out, err), time.monotonic()
        return child

    def finish(self, child, limit_s=HANGS_AFTER_S):
        """Waits for it; what is left of it a little later is in the result."""
        hung = False
        try:
            child.wait(limit_s)
        except subprocess.TimeoutExpired:
            try:
                child.wait(max(0, GIVES_UP_AFTER_S - limit_s))
                with self.chapter.turn:
                    self.chapter.now["slow"] = self.chapter.now.get("slow", 0) + 1
            except subprocess.TimeoutExpired:
                hung = True
        wall_s = time.monotonic() - child.began
        left = self.leftovers(0 if hung else 2)
        for pid, _ in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        child.wait()
        self.chapter.reap(child.pid)
        texts = []
        for file in child.files:
            file.seek(0)
            texts.append(file.read())
            file.close()
        return Done(child.returncode, texts[0], texts[1].decode(errors="replace"), hung, left, wall_s)

    def run(self, argv, limit_s=HANGS_AFTER_S, **more):
        return self.finish(self.start(argv, **more), limit_s)

    def hosepipe(self, args, wrapper=(), **more):
        return self.run([*wrapper, self.chapter.program, *args], **more)

    def processes(self):
        """Processes of this place, as (pid, name): they have its variable."""
        found = []
        for pid in descendants(os.getpid()):
            try:
                with open(f"/proc/{pid}/environ", "rb") as environ:
                    if self.marker.encode() not in environ.read().split(b"\0"):
                        continue
                with open(f"/proc/{pid}/stat") as stat:
                    name, state = re.match(r"\d+ \((.*)\) (.)", stat.read()).groups()
            except OSError:
                continue
            if state != "Z":
                found.append((pid, name))
        return found

    def leftovers(self, patience_s):
        """What is there that should not be, after waiting for its end."""
        deadline = time.monotonic() + patience_s
        while True:
            left = [f"process {pid} ({name})" for pid, name in self.processes()]
            for folder in (self.tmp, self.runtime):
                left += [os.path.join(folder, name) for name in os.listdir(folder) if not is_kept(name)]
            left += [name for name in os.listdir(self.here) if name.startswith(".") or ".tmp" in name or "hosepipe" in name]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.02)

    def clean(self):
        """Empties it, so that what one run left does not count against the next."""
        for folder in (self.tmp, self.runtime):
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        for name in os.listdir(self.here):
            if name.startswith(".") or ".tmp" in name or "hosepipe" in name:
                os.remove(os.path.join(self.here, name))


def children(pid):
    """Process numbers of what any thread of it started, or inherited."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return found


def descendants(pid):
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def is_kept(name):
    """What hosepipe leaves on purpose: what it has learnt of shells, and how fast this machine copies."""
    return name.startswith(("hosepipe-shells-", "hosepipe-copies-"))


def shorten(text, length=300):
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length // 2] + " … " + text[-length // 2 :]


def general_failure(done):
    """What no run may do, whatever happened to it; None where it did none of it."""
    if done.hung:
        return f"no end after {done.wall_s:.0f} s: {shorten(done.err)}"
    if "panicked at" in done.err or "(a bug in hosepipe" in done.err:
        return f"a panic: {shorten(done.err)}"
    if done.code in (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL):
        return f"ended by {signal.Signals(-done.code).name}: {shorten(done.err)}"
    # What `spread` has finished is kept, and it says how to go on from there.
    left = [name for name in done.left if not ("and kept. To go on" in done.err and name in done.err)]
    if left:
        return f"left behind: {', '.join(left)}; status {done.code}, {shorten(done.err)}"
    return None


def failure_of(done, expected, must=False):
    """None where the run gave what was expected, (status, bytes), or, unless it must, a sentence and a status other than 0."""
    failure = general_failure(done)
    if failure or (done.code, done.out) == expected:
        return failure
    if must:
        return f"status {done.code} and {len(done.out)} bytes, not {expected[0]} and {len(expected[1])}: {shorten(done.err)}"
    if done.code == 0:
        return f"status 0 with other bytes ({len(done.out)}, not {len(expected[1])}): {shorten(done.err)}"
    return None if done.err.strip() else f"status {done.code} without a sentence"
