/* Runs a program and makes one system call of it fail, or a signal come with it: `strace -e inject` for single processes.
 *
 * strace -f counts calls in every process that it follows, so that it would also break the user's own programs (cat, bash). This one
 * counts only in processes that run the program itself: forks of it, named 0, 0.1, 0.2, 0.1.1 … in the order in which each maker made
 * them, threads too; not in what executes another program, nor in its children. With --library, also bash, and there the calls from inside
 * the library that hosepipe preloads into it. Where one call is to fail, a seccomp filter stops a process at that call alone.
 *
 * fault FILE [--library] record COMMAND…               counts the calls
 * fault FILE [--library] error WHO CALL N ERRNO COMMAND…   the N-th CALL (a number) of process WHO fails, and is not made
 * fault FILE [--library] signal WHO CALL N SIGNAL COMMAND… the signal comes as the N-th CALL begins; SIGSTOP is ended after a second
 * fault FILE storm x 0 0 SEED COMMAND…                    of all calls that a signal may interrupt, half fail with EINTR, at random by SEED
 * fault FILE short x 0 0 SEED COMMAND…                 reads, writes and splices get a smaller count, where the kernel may do that
 *
 * /dev/shm and System V objects are private to the run. To FILE it writes what happened: calls WHO CALL COUNT · hit FD ·
 * exit STATUS (signals: 128 + number) · crash WHO SIGNAL · hang · left WHAT. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>

enum { CALLS = 480, TASKS = 4096, HANG_S = 20, LEAVE_S = 6, STOP_S = 1 };
#define NAMED_WITHIN_S 0.5
struct task {
    pid_t pid;
    char name[56];
    int forks, failing, waits, started, other; /* failing: the error that the call under way returns; waits: until its maker has named
                                                  it; started: executes the program; other: it or its maker executes another one */
    double since; /* stopped since this time, to wait for its name */
    unsigned count[CALLS];
    unsigned long long from, to; /* the code whose calls count, or do not: the library, the loader ld.so */
    unsigned long long asked;    /* of brk(2) */
} *tasks[TASKS];
static int task_count, library, filtered; /* filtered: processes stop at the one call only */
static const char *mode, *who;
static unsigned long call, when, what, storm;
static char program[PATH_MAX];
static struct { pid_t pid; double at; } stopped;
static FILE *result;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static struct task *task_of(pid_t pid) {
    for (int i = 0; i < task_count; i++)
        if (tasks[i]->pid == pid) return tasks[i];
    if (task_count == TASKS) exit(99);
    struct task *task = tasks[task_count++] = calloc(1, sizeof *task);
    task->pid = pid;
    task->waits = 1;
    return task;
}

static void forget(pid_t pid) {
    for (int i = 0; i < task_count; i++)
        if (tasks[i]->pid == pid) {
            if (!strcmp(mode, "record"))
                for (int n = 0; n < CALLS; n++)
                    if (tasks[i]->count[n]) fprintf(result, "calls %s %d %u\n", tasks[i]->name, n, tasks[i]->count[n]);
            free(tasks[i]);
            tasks[i] = tasks[--task_count];
            return;
        }
}

/* Whether what this process executes is the program under test, or a shell with its library. */
static int ours(pid_t pid) {
    char link[64], path[PATH_MAX] = "";
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    if (readlink(link, path, sizeof path - 1) < 0) return 0;
    return !strcmp(path, program) || (library && strlen(path) > 5 && !strcmp(path + strlen(path) - 5, "/bash"));
}

/* Whether the call comes from code that counts: of a shell the library, of the program all but its loader, ld.so. */
static int counts(struct task *task, unsigned long long ip) {
    const char *file = library ? "hosepipe" : "/ld-";
    char line[PATH_MAX + 100], name[64];
    snprintf(name, sizeof name, "/proc/%d/exe", task->pid);
    ssize_t length = readlink(name, line, sizeof line - 1);
    if (library && length > 0 && (line[length] = 0, !strcmp(line, program))) return 0;
    if (!task->to) {
        snprintf(name, sizeof name, "/proc/%d/maps", task->pid);
        FILE *maps = fopen(name, "r");
        unsigned long long from, to;
        while (maps && fgets(line, sizeof line, maps))
            if (strstr(line, " r-xp ") && strstr(line, file) && sscanf(line, "%llx-%llx", &from, &to) == 2) task->from = from, task->to = to;
        if (maps) fclose(maps);
    }
    return (ip >= task->from && ip < task->to) == library;
}

static int interruptible(unsigned long nr) {
    static const int calls[] = {SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6,
        SYS_epoll_wait, SYS_epoll_pwait, SYS_futex, SYS_recvfrom, SYS_recvmsg, SYS_sendto, SYS_sendmsg, SYS_accept, SYS_accept4, SYS_connect,
        SYS_wait4, SYS_waitid, SYS_nanosleep, SYS_clock_nanosleep, SYS_flock, SYS_msgrcv, SYS_msgsnd, SYS_semop,
        SYS_semtimedop, SYS_mq_timedreceive, SYS_mq_timedsend, SYS_splice, SYS_tee, SYS_vmsplice, SYS_sendfile, SYS_copy_file_range,
        SYS_io_uring_enter};
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
        if ((unsigned long)calls[i] == nr) return 1;
    return 0;
}

/* Whether the kernel may move fewer bytes through this descriptor than it was asked to: not for packets, nor for pipe writes that are atomic. */
static int may_be_short(pid_t pid, int fd, int writes, unsigned long bytes) {
    int task = syscall(SYS_pidfd_open, pid, 0), copy = task < 0 ? -1 : syscall(SYS_pidfd_getfd, task, fd, 0), type = 0, yes = 0;
    socklen_t size = sizeof type;
    struct stat status;
    if (copy >= 0 && !fstat(copy, &status)) {
        if (S_ISFIFO(status.st_mode)) yes = !(fcntl(copy, F_GETFL) & O_DIRECT) && !(writes && bytes <= 4096);
        else if (S_ISSOCK(status.st_mode)) yes = !getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_STREAM;
        else yes = S_ISREG(status.st_mode);
    }
    if (copy >= 0) close(copy);
    if (task >= 0) close(task);
    return yes;
}

static void shorten(struct task *task, struct user_regs_struct *regs) {
    unsigned long nr = regs->orig_rax;
    int writes = nr == SYS_write || nr == SYS_pwrite64 || nr == SYS_sendto || nr == SYS_writev || nr == SYS_sendfile;
    unsigned long long *count = nr == SYS_splice || nr == SYS_copy_file_range ? &regs->r8 : nr == SYS_sendfile ? &regs->r10 : &regs->rdx;
    int by_bytes = nr == SYS_read || nr == SYS_pread64 || nr == SYS_recvfrom || nr == SYS_write || nr == SYS_pwrite64 || nr == SYS_sendto ||
                   nr == SYS_splice || nr == SYS_tee || nr == SYS_copy_file_range || nr == SYS_sendfile;
    if (nr == SYS_tee) count = &regs->rdx;
    if (!(by_bytes || nr == SYS_readv || nr == SYS_writev) || *count < 2 || !may_be_short(task->pid, regs->rdi, writes, by_bytes ? *count : 0)) return;
    unsigned long most = *count > 9999 && what % 2 ? 9999 : *count - 1;
    *count = 1 + rand_r((unsigned *)&storm) % most;
    ptrace(PTRACE_SETREGS, task->pid, 0, regs);
    when++;
}

/* The process of a thread, which may end before it: SIGCONT is for the process. */
static pid_t process_of(pid_t thread) {
    char name[64], line[128];
    int process = thread;
    snprintf(name, sizeof name, "/proc/%d/status", thread);
    FILE *status = fopen(name, "r");
    while (status && fgets(line, sizeof line, status)) if (sscanf(line, "Tgid: %d", &process) == 1) break;
    if (status) fclose(status);
    return process;
}

/* Makes this process and all that it starts stop at the one call. */
static int stop_at_the_call(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    if (!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 0;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* Goes on to the next stop: at any call, at the one call, or at the end of a call that is to fail. */
static void go_on(struct task *task, int signal) {
    ptrace(filtered && !task->failing ? PTRACE_CONT : PTRACE_SYSCALL, task->pid, 0, signal);
}

/* Whether this is a futex(2) that does not wait. The kernel never lets a wake-up fail, and a lost one is for ever. */
static int wakes_up(struct ptrace_syscall_info *info) {
    int operation = info->entry.args[1] & FUTEX_CMD_MASK;
    return info->entry.nr == SYS_futex && operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET;
}

static void entry(struct task *task, struct ptrace_syscall_info *info) {
    unsigned long nr = info->entry.nr;
    if (!task->started || task->other || nr >= CALLS || wakes_up(info) || !counts(task, info->instruction_pointer)) return;
    task->count[nr]++;
    struct user_regs_struct regs;
    if (!strcmp(mode, "short")) {
        ptrace(PTRACE_GETREGS, task->pid, 0, &regs);
        shorten(task, &regs);
    } else if (!strcmp(mode, "storm") && interruptible(nr) && rand_r((unsigned *)&storm) % 2) {
        task->failing = EINTR;
        when++;
    } else if (who && nr == call && task->count[nr] == when && !strcmp(who, task->name)) {
        fprintf(result, "hit %lld\n", (long long)info->entry.args[0]);
        if (!strcmp(mode, "error")) task->failing = what;
        else {
            kill(task->pid, what);
            if (what == SIGSTOP) stopped.pid = process_of(task->pid), stopped.at = now();
        }
    }
    /* close(2) releases its descriptor whatever it returns; a brk(2) that fails returns where the break is. */
    if (task->failing && nr != SYS_close) {
        ptrace(PTRACE_GETREGS, task->pid, 0, &regs);
        if (nr == SYS_brk) task->asked = regs.rdi, regs.rdi = 0;
        else regs.orig_rax = -1;
        ptrace(PTRACE_SETREGS, task->pid, 0, &regs);
    }
}

static void leave(struct task *task) {
    struct user_regs_struct regs;
    if (!task->failing) return;
    ptrace(PTRACE_GETREGS, task->pid, 0, &regs);
    if (task->asked) regs.rdi = task->asked, task->asked = 0;
    else regs.rax = -(long long)task->failing;
    ptrace(PTRACE_SETREGS, task->pid, 0, &regs);
    task->failing = 0;
}

static void follow(pid_t pid, int status) {
    struct task *task = task_of(pid);
    int signal = WSTOPSIG(status), event = status >> 16;
    unsigned long child = 0;
    struct ptrace_syscall_info info;
    if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
        ptrace(PTRACE_GETEVENTMSG, pid, 0, &child);
        struct task *made = task_of(child);
        snprintf(made->name, sizeof made->name, "%.40s.%d", task->name, ++task->forks);
        made->started = task->started, made->other = task->other;
        made->from = task->from, made->to = task->to;
        if (made->waits == 2) go_on(made, 0);
        made->waits = 0;
        signal = 0;
    } else if (event == PTRACE_EVENT_EXEC) {
        task->from = task->to = 0;
        task->started = 1;
        task->other |= !ours(pid);
        /* Without a tracer, a call that the filter stops would fail. */
        if (task->other && !filtered) {
            ptrace(PTRACE_DETACH, pid, 0, 0);
            return forget(pid);
        }
        signal = 0;
    } else if (event == PTRACE_EVENT_STOP) {
        if (task->waits) {
            task->waits = 2, task->since = now();
            return;
        }
        if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) {
            ptrace(PTRACE_LISTEN, pid, 0, 0);
            return;
        }
        signal = 0;
    } else if (event == PTRACE_EVENT_SECCOMP || signal == (SIGTRAP | 0x80)) {
        if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0) {
            /* The number and the arguments are at the same places of both. */
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY || info.op == PTRACE_SYSCALL_INFO_SECCOMP) entry(task, &info);
            else if (info.op == PTRACE_SYSCALL_INFO_EXIT) leave(task);
        }
        signal = 0;
    }
    go_on(task, signal);
}

/* Lets go on what waits for a name and gets none: its maker was killed as it had made it. */
static void let_nameless_go_on(void) {
    for (int i = 0; i < task_count; i++)
        if (tasks[i]->waits == 2 && now() - tasks[i]->since > NAMED_WITHIN_S) {
            tasks[i]->waits = 0, tasks[i]->other = 1;
            go_on(tasks[i], 0);
        }
}

/* Every process below this one: `left NAME`, or SIGKILL. */
static int below(pid_t pid, int end) {
    char path[64], children[8192], comm[32] = "?";
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, children, sizeof children - 1);
    if (file >= 0) close(file);
    children[length > 0 ? length : 0] = 0;
    for (char *number = strtok(children, " "), *rest; number; number = rest) {
        pid_t child = atoi(number);
        rest = strtok(NULL, " ");
        snprintf(path, sizeof path, "/proc/%d/comm", child);
        FILE *name = fopen(path, "r");
        if (name) {
            if (fgets(comm, sizeof comm, name)) comm[strcspn(comm, "\n")] = 0;
            fclose(name);
        }
        struct task *task = NULL;
        for (int i = 0; i < task_count; i++) if (tasks[i]->pid == child) task = tasks[i];
        if (end) kill(child, SIGKILL);
        else fprintf(result, "left process %s %s\n", comm, task ? task->name : "");
        found++;
    }
    return found;
}

static void list(const char *folder, const char *kind) {
    DIR *open_folder = opendir(folder);
    for (struct dirent *entry; open_folder && (entry = readdir(open_folder));)
        if (entry->d_name[0] != '.') fprintf(result, "left %s %s\n", kind, entry->d_name);
    if (open_folder) closedir(open_folder);
}

/* Private System V objects, POSIX queues and /dev/shm; what cannot be had is not checked. */
static int private_objects(void) {
    if (unshare(CLONE_NEWNS | CLONE_NEWIPC)) return 0;
    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    return !mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=512m");
}

static void objects_left(void) {
    static const char *files[] = {"/proc/sysvipc/msg", "/proc/sysvipc/sem", "/proc/sysvipc/shm"};
    list("/dev/shm", "shm");
    for (int i = 0; i < 3; i++) {
        char line[512];
        FILE *file = fopen(files[i], "r");
        for (int n = 0; file && fgets(line, sizeof line, file); n++)
            if (n) fprintf(result, "left %s\n", files[i] + 6);
        if (file) fclose(file);
    }
    if (!mount("mqueue", "/dev/shm", "mqueue", 0, NULL)) list("/dev/shm", "queue");
}

static void tick(int signal) { (void)signal; }

int main(int count, char **args) {
    if (count < 4) return 98;
    int at = 2;
    if (at < count && !strcmp(args[at], "--library")) library = 1, at++;
    mode = args[at++];
    if (strcmp(mode, "record")) {
        who = args[at], call = atol(args[at + 1]), when = atol(args[at + 2]), what = atol(args[at + 3]);
        at += 4;
    }
    storm = what;
    filtered = !strcmp(mode, "error") || !strcmp(mode, "signal");
    result = fopen(args[1], "we");
    if (!result || at >= count || !realpath(args[at], program)) return 98;
    setvbuf(result, NULL, _IOLBF, 0);
    int separate = private_objects(), gate[2];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (pipe2(gate, O_CLOEXEC)) return 98;
    pid_t first = fork();
    if (!first) {
        char byte;
        close(gate[1]);
        if (read(gate[0], &byte, 1) < 0 || (filtered && stop_at_the_call())) _exit(98);
        execv(program, args + at);
        _exit(98);
    }
    struct task *task = task_of(first);
    strcpy(task->name, "0");
    task->waits = 0;
    if (ptrace(PTRACE_SEIZE, first, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL)) return 98;
    close(gate[0]);
    close(gate[1]);
    struct sigaction action = {.sa_handler = tick};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &every, NULL);
    double begin = now(), ended = 0;
    for (int ending = 0;;) {
        int status;
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == ECHILD) break;
        let_nameless_go_on();
        if (stopped.pid && now() - stopped.at > STOP_S) kill(stopped.pid, SIGCONT), stopped.pid = 0;
        if (!ending && !ended && now() - begin > HANG_S) {
            fprintf(result, "hang\n");
            below(getpid(), 0);
            ending = 1;
        } else if (!ending && ended && now() - ended > LEAVE_S) {
            below(getpid(), 0);
            ending = 1;
        }
        if (ending) {
            below(getpid(), 1);
            if (now() - begin > HANG_S + LEAVE_S + 5) break;
        }
        if (pid < 0) continue;
        if (WIFSTOPPED(status)) {
            follow(pid, status);
            continue;
        }
        if (pid == first && !ended) {
            ended = now();
            fprintf(result, "exit %d %.2f\n", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), ended - begin);
        }
        if (WIFSIGNALED(status) && !task_of(pid)->other && strchr((char[]){SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, 0}, WTERMSIG(status)))
            fprintf(result, "crash %s %d\n", task_of(pid)->name, WTERMSIG(status));
        forget(pid);
    }
    if (strcmp(mode, "storm") == 0 || strcmp(mode, "short") == 0) fprintf(result, "made %lu\n", when);
    if (separate) objects_left();
    else fprintf(result, "shared objects\n");
    return 0;
}
