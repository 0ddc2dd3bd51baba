// SPDX-License-Identifier: Apache-2.0
#include "common/http/client/dns.h"

#include <sys/select.h> // ares.h names fd_set

#include <ares.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "common/base/arena.h"
#include "common/base/map.h"

enum {
    TTL_MIN_S = 5,
    TTL_MAX_S = 300,
    FAILED_S = 5,
    QUERY_MS = 1000, // until the next server, or the same one, is asked
    QUERY_TRIES = 3,
};

// A name and what is known of it. In `names` until it is too old and another one needs the room.
typedef struct Name {
    Dns *dns;
    char *text;
    DnsAddresses found;
    Error err;
    uint64_t until_ms;  // of the loop's clock; 0: never asked
    bool asking, ready; // ready: in the list of those whose answer is to go out
    struct Name *next_ready;
    DnsLookup *first, *last; // that wait, in order
} Name;

struct DnsLookup {
    Name *name;
    DnsLookup *next;
    DnsFound on_found; // NULL: cancelled
    void *ctx;
};

typedef struct Socket {
    uv_poll_t poll;
    Dns *dns;
    ares_socket_t fd;
    struct Socket *next;
} Socket;

struct Dns {
    uv_loop_t *loop;
    ares_channel channel;
    Map *names;
    Name *ready;
    Socket *sockets;
    uv_timer_t timer; // c-ares' time-outs
    uv_timer_t soon;  // answers that are known go out from the loop
    unsigned handles; // of the loop that are not closed yet
    bool closing, has_channel;
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// ---- those that wait ----

static void answer(Name *name)
{
    DnsLookup *waiting = name->first;
    name->first = name->last = NULL;
    while (waiting != NULL) {
        DnsLookup *next = waiting->next;
        if (waiting->on_found != NULL) {
            bool failed = name->err.kind != ERROR_NONE;
            waiting->on_found(waiting->ctx, &name->found, failed ? &name->err : NULL);
        }
        free(waiting);
        waiting = next;
    }
}

static bool is_fresh(const Name *name)
{
    return !name->asking && name->until_ms > uv_now(name->dns->loop);
}

static void on_soon(uv_timer_t *timer)
{
    Dns *dns = timer->data;
    Name *name = dns->ready;
    dns->ready = NULL;
    while (name != NULL) {
        Name *next = name->next_ready;
        name->ready = false;
        if (!name->asking) { // else it was too old meanwhile
            answer(name);
        }
        name = next;
    }
}

static void answer_soon(Name *name)
{
    Dns *dns = name->dns;
    if (!name->ready && !dns->closing) {
        name->ready = true;
        name->next_ready = dns->ready;
        dns->ready = name;
        uv_timer_start(&dns->soon, on_soon, 0, 0);
    }
}

// ---- c-ares on the loop ----

static void watch_time(Dns *dns);

static void process(Dns *dns, ares_socket_t readable, ares_socket_t writable)
{
    ares_process_fd(dns->channel, readable, writable);
    watch_time(dns);
}

static void on_time(uv_timer_t *timer)
{
    process(timer->data, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void watch_time(Dns *dns)
{
    struct timeval room;
    struct timeval *wait = dns->closing ? NULL : ares_timeout(dns->channel, NULL, &room);
    if (wait == NULL) {
        uv_timer_stop(&dns->timer);
        return;
    }
    uint64_t ms = (uint64_t)wait->tv_sec * 1000 + (uint64_t)wait->tv_usec / 1000;
    uv_timer_start(&dns->timer, on_time, ms + 1, 0);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    Socket *at = poll->data;
    bool readable = status < 0 || (events & UV_READABLE) != 0;
    bool writable = status < 0 || (events & UV_WRITABLE) != 0;
    ares_socket_t fd = at->fd; // c-ares may end it
    process(at->dns, readable ? fd : ARES_SOCKET_BAD, writable ? fd : ARES_SOCKET_BAD);
}

static void handle_closed(Dns *dns)
{
    assert(dns->handles > 0);
    if (--dns->handles > 0 || !dns->closing) {
        return;
    }
    void (*on_freed)(void *ctx) = dns->on_freed;
    void *ctx = dns->freed_ctx;
    map_free(dns->names);
    free(dns);
    ares_library_cleanup();
    on_freed(ctx);
}

static void on_socket_closed(uv_handle_t *handle)
{
    Socket *at = handle->data;
    Dns *dns = at->dns;
    free(at);
    handle_closed(dns);
}

static void forget_socket(Dns *dns, ares_socket_t fd)
{
    for (Socket **at = &dns->sockets; *at != NULL; at = &(*at)->next) {
        Socket *found = *at;
        if (found->fd == fd) {
            *at = found->next;
            uv_close((uv_handle_t *)&found->poll, on_socket_closed);
            return;
        }
    }
}

static Socket *socket_of(Dns *dns, ares_socket_t fd)
{
    for (Socket *at = dns->sockets; at != NULL; at = at->next) {
        if (at->fd == fd) {
            return at;
        }
    }
    Socket *made = xcalloc(1, sizeof *made);
    made->dns = dns;
    made->fd = fd;
    if (uv_poll_init_socket(dns->loop, &made->poll, fd) != 0) {
        free(made);
        return NULL; // its query times out
    }
    made->poll.data = made;
    made->next = dns->sockets;
    dns->sockets = made;
    dns->handles++;
    return made;
}

static void on_ares_socket(void *ctx, ares_socket_t fd, int readable, int writable)
{
    Dns *dns = ctx;
    if (!readable && !writable) {
        forget_socket(dns, fd); // c-ares closes it now
        return;
    }
    Socket *at = socket_of(dns, fd);
    if (at != NULL) {
        int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);
        uv_poll_start(&at->poll, events, on_poll);
    }
}

// ---- answers ----

static void take_addresses(Name *name, const struct ares_addrinfo *info, int *ret_ttl)
{
    DnsAddresses *found = &name->found;
    for (const struct ares_addrinfo_node *at = info->nodes; at != NULL; at = at->ai_next) {
        if (at->ai_addrlen > sizeof found->list[0]) {
            continue;
        }
        if (found->count == DNS_ADDRESSES_MAX) {
            found->more = true;
            break;
        }
        memcpy(&found->list[found->count++], at->ai_addr, at->ai_addrlen);
        *ret_ttl = at->ai_ttl < *ret_ttl ? at->ai_ttl : *ret_ttl;
    }
}

static int clamped(int ttl)
{
    return ttl < TTL_MIN_S ? TTL_MIN_S : ttl > TTL_MAX_S ? TTL_MAX_S : ttl;
}

static void on_ares_answer(void *ctx, int status, int timeouts, struct ares_addrinfo *info)
{
    Name *name = ctx;
    Dns *dns = name->dns;
    (void)timeouts;
    name->asking = false;
    name->found = (DnsAddresses){.count = 0};
    int ttl = TTL_MAX_S;
    if (info != NULL) {
        take_addresses(name, info, &ttl);
        ares_freeaddrinfo(info);
    }
    bool good = status == ARES_SUCCESS && name->found.count > 0;
    error_clear(&name->err);
    if (!good) {
        const char *why = status == ARES_SUCCESS ? "it has no address" : ares_strerror(status);
        error_set(&name->err, ERROR_TRANSIENT, "the name '%.60s': %s", name->text, why);
    }
    name->until_ms = uv_now(dns->loop) + (uint64_t)(good ? clamped(ttl) : FAILED_S) * 1000;
    answer_soon(name);
}

static void ask(Name *name)
{
    name->asking = true;
    struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    ares_getaddrinfo(name->dns->channel, name->text, NULL, &hints, on_ares_answer, name);
    watch_time(name->dns);
}

// ---- names ----

static void free_name(void *value)
{
    Name *name = value;
    while (name->first != NULL) {
        DnsLookup *next = name->first->next;
        free(name->first);
        name->first = next;
    }
    free(name->text);
    free(name);
}

// Room for one more: the one whose answer is the oldest goes, unless it is asked or waited for.
static void make_room(Dns *dns)
{
    if (map_count(dns->names) < DNS_NAMES_MAX) {
        return;
    }
    Name *oldest = NULL;
    size_t at = 0;
    Str key;
    void *value;
    while (map_next(dns->names, &at, &key, &value)) {
        Name *name = value;
        bool idle = !name->asking && !name->ready;
        if (idle && (oldest == NULL || name->until_ms < oldest->until_ms)) {
            oldest = name;
        }
    }
    if (oldest != NULL) {
        map_remove(dns->names, str_from(oldest->text));
    }
}

static Name *name_of(Dns *dns, const char *text)
{
    Name *name = map_get(dns->names, str_from(text));
    if (name == NULL) {
        make_room(dns);
        name = xcalloc(1, sizeof *name);
        name->dns = dns;
        name->text = xstrdup(text);
        map_put(dns->names, str_from(text), name);
    }
    return name;
}

const DnsAddresses *dns_known(Dns *dns, const char *text)
{
    const Name *name = map_get(dns->names, str_from(text));
    return name != NULL && is_fresh(name) && name->err.kind == ERROR_NONE ? &name->found : NULL;
}

DnsLookup *dns_find(Dns *dns, const char *text, DnsFound on_found, void *ctx)
{
    assert(!dns->closing);
    Name *name = name_of(dns, text);
    DnsLookup *lookup = xcalloc(1, sizeof *lookup);
    *lookup = (DnsLookup){.name = name, .on_found = on_found, .ctx = ctx};
    *(name->last == NULL ? &name->first : &name->last->next) = lookup;
    name->last = lookup;
    if (is_fresh(name)) {
        answer_soon(name);
    } else if (!name->asking) {
        ask(name);
    }
    return lookup;
}

void dns_cancel(DnsLookup *lookup)
{
    lookup->on_found = NULL; // it is freed with the name's answer
}

void dns_avoid(Dns *dns, const char *text, const struct sockaddr_storage *address)
{
    Name *name = map_get(dns->names, str_from(text));
    if (name == NULL || name->found.count < 2 ||
        memcmp(&name->found.list[0], address, sizeof name->found.list[0]) != 0) {
        return; // another call has seen it before us
    }
    struct sockaddr_storage first = name->found.list[0];
    size_t rest = name->found.count - 1;
    memmove(&name->found.list[0], &name->found.list[1], rest * sizeof first);
    name->found.list[rest] = first;
}

bool dns_check(const DnsAddresses *found, const HttpGuard *guard, const char *name, Error *err)
{
    if (found->more) {
        return error_set(
            err, ERROR_CONFIG, "the name '%.60s' has more than %d addresses", name,
            (int)DNS_ADDRESSES_MAX);
    }
    for (size_t i = 0; i < found->count; i++) {
        if (!guard_address(guard, (const struct sockaddr *)&found->list[i], err)) {
            return error_wrap(err, "the name '%.60s'", name);
        }
    }
    return true;
}

// ---- life ----

static bool open_channel(Dns *dns, const char *servers, Error *err)
{
    struct ares_options options = {
        .timeout = QUERY_MS,
        .tries = QUERY_TRIES,
        .sock_state_cb = on_ares_socket,
        .sock_state_cb_data = dns,
    };
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB | ARES_OPT_DOMAINS;
    int status = ares_init_options(&dns->channel, &options, mask);
    dns->has_channel = status == ARES_SUCCESS;
    if (dns->has_channel && servers != NULL) {
        status = ares_set_servers_ports_csv(dns->channel, servers);
    }
    if (status != ARES_SUCCESS) {
        return error_set(
            err, ERROR_CONFIG, "the DNS servers '%.80s': %s", servers != NULL ? servers : "",
            ares_strerror(status));
    }
    return true;
}

Dns *dns_new(uv_loop_t *loop, const char *servers, Error *err)
{
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
        error_set(err, ERROR_CONFIG, "c-ares does not start");
        return NULL;
    }
    Dns *dns = xcalloc(1, sizeof *dns);
    dns->loop = loop;
    if (!open_channel(dns, servers, err)) {
        if (dns->has_channel) {
            ares_destroy(dns->channel);
        }
        free(dns);
        ares_library_cleanup();
        return NULL;
    }
    dns->names = map_new(free_name);
    uv_timer_init(loop, &dns->timer);
    uv_timer_init(loop, &dns->soon);
    dns->timer.data = dns->soon.data = dns;
    dns->handles = 2;
    return dns;
}

static void on_timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

void dns_free(Dns *dns, void (*on_freed)(void *ctx), void *ctx)
{
    dns->closing = true;
    dns->on_freed = on_freed;
    dns->freed_ctx = ctx;
    ares_destroy(dns->channel); // ends its queries and closes its sockets
    uv_close((uv_handle_t *)&dns->timer, on_timer_closed);
    uv_close((uv_handle_t *)&dns->soon, on_timer_closed);
}
