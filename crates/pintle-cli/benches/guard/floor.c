/*
 * The least that a hook of a coding agent can do: hand its input to whoever listens at a socket, hand the answer on.
 * No deadline, no proof of who answers, no refusal of its own beyond the exit code.
 *
 * cc -O2 -static -o floor floor.c; ./floor SOCKET
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { refused = 2 };

static char bytes[1 << 16];

/* Reads `from` to its end and writes all of it to `to`; how many bytes that were, or -1. */
static long hand_on(int from, int to) {
    long sum = 0;
    for (;;) {
        ssize_t count = read(from, bytes, sizeof bytes);
        if (count <= 0) {
            return count < 0 ? -1 : sum;
        }
        if (write(to, bytes, (size_t)count) != count) {
            return -1;
        }
        sum += count;
    }
}

int main(int words, char **word) {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    if (words != 2 || strlen(word[1]) >= sizeof where.sun_path) {
        return refused;
    }
    strcpy(where.sun_path, word[1]);
    int line = socket(AF_UNIX, SOCK_STREAM, 0);
    if (line < 0 || connect(line, (struct sockaddr *)&where, sizeof where) < 0) {
        return refused;
    }
    if (hand_on(STDIN_FILENO, line) <= 0 || shutdown(line, SHUT_WR) < 0) {
        return refused;
    }
    return hand_on(line, STDOUT_FILENO) > 0 ? 0 : refused;
}
