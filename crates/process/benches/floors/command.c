/* The least that a command costs below an adopter: floor COUNT PAYLOAD_BYTES COMMAND
 *
 * COUNT times: four pipes, an adopter that shares this memory, COMMAND below it by /bin/sh, the payload written, both
 * outputs read to their ends, the adopter's word that nothing is left. Prints the nanoseconds that took in all. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 64 << 10, PIECE_BYTES = 64 << 10, EVENTS = 3 };

static char *const VARS[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/", "LANG=C.UTF-8", NULL};

struct start {
    char *command;
    int stdio[3];
    int events;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* The child's bond to the adopter, and its program. */
static void run(const struct start *start)
{
    char *const argv[] = {"/bin/sh", "-c", start->command, NULL};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir("/") == 0)
        execve(argv[0], argv, VARS);
    _exit(127);
}

static int adopt(void *argument)
{
    const struct start *start = argument;
    int status = 0, last = 0;
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    for (int end = 0; end < 3; end++)
        dup2(start->stdio[end], end);
    dup3(start->events, EVENTS, O_CLOEXEC);
    close_range(EVENTS + 1, ~0U, 0);
    pid_t child = vfork();
    if (child == 0)
        run(start);
    for (int end = 0; end < 3; end++)
        close(end);
    if (write(EVENTS, "r", 1) != 1)
        _exit(1);
    for (pid_t ended; (ended = wait(&status)) > 0;)
        if (ended == child)
            last = status;
    _exit(write(EVENTS, &last, sizeof last) == sizeof last ? 0 : 1);
}

/* Writes what is left of the payload, and reads both outputs to their ends. */
static void exchange(const char *payload, size_t left, int feed, int outputs[2])
{
    static char piece[PIECE_BYTES];
    struct pollfd ends[3] = {{outputs[0], POLLIN, 0}, {outputs[1], POLLIN, 0}, {feed, POLLOUT, 0}};
    for (int open = 2; open > 0;) {
        if (ends[2].fd >= 0) {
            ssize_t wrote = left ? write(feed, payload, left) : 0;
            payload += wrote > 0 ? wrote : 0;
            left -= wrote > 0 ? (size_t)wrote : 0;
            if (left == 0) {
                close(feed);
                ends[2].fd = -1;
            }
        }
        if (poll(ends, 3, -1) < 0)
            fail("poll");
        for (int end = 0; end < 2; end++)
            if (ends[end].fd >= 0 && ends[end].revents && read(ends[end].fd, piece, sizeof piece) == 0) {
                close(ends[end].fd);
                ends[end].fd = -1;
                open--;
            }
    }
    if (ends[2].fd >= 0)
        close(feed);
}

static void once(char *command, const char *payload, size_t bytes, char *stack)
{
    int in[2], out[2], err[2], events[2], status;
    char word;
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || pipe2(events, O_CLOEXEC))
        fail("pipe2");
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    struct start start = {command, {in[0], out[1], err[1]}, events[1]};
    pid_t adopter = clone(adopt, stack + STACK_BYTES, CLONE_VM | SIGCHLD, &start);
    if (adopter < 0)
        fail("clone");
    close(events[1]);
    if (read(events[0], &word, 1) != 1)
        fail("the adopter's first word");
    close(in[0]);
    close(out[1]);
    close(err[1]);
    exchange(payload, bytes, in[1], (int[2]){out[0], err[0]});
    if (read(events[0], &status, sizeof status) != sizeof status || status != 0)
        fail("the adopter's last word");
    close(events[0]);
    if (waitpid(adopter, &status, 0) != adopter)
        fail("waitpid");
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    long times = atol(words[1]);
    size_t bytes = (size_t)atol(words[2]);
    char *payload = malloc(bytes), *stack = aligned_alloc(16, STACK_BYTES);
    if (!payload || !stack)
        fail("memory");
    memset(payload, 'x', bytes);
    payload[bytes - 1] = '\n';
    signal(SIGPIPE, SIG_IGN);
    struct timespec began, ended;
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (long time = 0; time < times; time++)
        once(words[3], payload, bytes, stack);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    printf("%lld\n", (ended.tv_sec - began.tv_sec) * 1000000000LL + ended.tv_nsec - began.tv_nsec);
    return 0;
}
