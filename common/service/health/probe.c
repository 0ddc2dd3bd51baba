// SPDX-License-Identifier: Apache-2.0
#include "common/service/health/probe.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

const char *probe_address(const char *bind)
{
    bool any4 = bind[0] == '\0' || strcmp(bind, "0.0.0.0") == 0 || strcmp(bind, "*") == 0;
    return any4 ? "127.0.0.1" : strcmp(bind, "::") == 0 ? "::1" : bind;
}

static int connect_to(const struct addrinfo *found)
{
    struct timeval limit = {.tv_sec = PROBE_TIMEOUT_MS / 1000};
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

static int open_socket(const char *bind, int port, Error *err)
{
    char service[8];
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    snprintf(service, sizeof service, "%d", port);
    int status = getaddrinfo(probe_address(bind), service, &wanted, &found);
    int fd = status == 0 ? connect_to(found) : -1;
    if (fd < 0) {
        error_set(
            err, ERROR_TRANSIENT, "no answer from the admin port %s:%d: %s", probe_address(bind),
            port, status != 0 ? gai_strerror(status) : strerror(errno));
    }
    if (found != NULL) {
        freeaddrinfo(found);
    }
    return fd;
}

// Until the server closes, as HTTP/1.0 has it; what does not fit is cut.
static bool read_answer(int fd, Buf *answer)
{
    char piece[2048];
    ssize_t n = read(fd, piece, sizeof piece);
    for (; n > 0 && buf_append(answer, piece, (size_t)n); n = read(fd, piece, sizeof piece)) {
    }
    return n >= 0;
}

static bool send_request(int fd, const char *path)
{
    char request[128];
    int size =
        snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
    assert(size > 0 && (size_t)size < sizeof request); // the path is a literal
    return write(fd, request, (size_t)size) == (ssize_t)size;
}

bool probe_ask(const char *bind, int port, const char *path, bool *ret_ok, Buf *said, Error *err)
{
    enum { ANSWER_MAX = PROBE_SAID_MAX + 4096 };
    int fd = open_socket(bind, port, err);
    if (fd < 0) {
        return false;
    }
    Buf answer;
    buf_init(&answer, ANSWER_MAX);
    bool whole = send_request(fd, path) && read_answer(fd, &answer);
    close(fd);
    const char *text = buf_c(&answer);
    const char *body = strstr(text, "\r\n\r\n");
    bool ok = whole && strncmp(text, "HTTP/1.", 7) == 0 && strlen(text) > 12 && body != NULL;
    if (ok) {
        *ret_ok = strncmp(text + 9, "200", 3) == 0;
        buf_str(said, str_trim(str_from(body + 4)));
    } else {
        error_set(
            err, ERROR_TRANSIENT, "no whole answer from the admin port %s:%d within %d ms",
            probe_address(bind), port, PROBE_TIMEOUT_MS);
    }
    buf_done(&answer);
    return ok;
}
