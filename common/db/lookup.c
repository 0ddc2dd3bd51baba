// SPDX-License-Identifier: Apache-2.0
// One name after the other. A question to the DNS cannot be called back, so the object outlives its
// user until the answer is there.
#include "common/db/lookup.h"

#include <libpq-fe.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/buf.h"

enum { LIST_MAX = 64 * 1024, NAME_SIZE = 256, ADDRESS_SIZE = 64 };

struct DbLookup {
    uv_getaddrinfo_t request;
    uv_loop_t *loop;
    DbLookedUp done; // NULL: dropped
    void *ctx;
    PQconninfoOption *parts; // of the url; the lists below are its
    Str hosts, ports;
    int next;                 // host that is looked at
    Buf host, hostaddr, port; // libpq's lists so far
    Error unknown;            // the last name without an address
};

static bool look_on(DbLookup *lookup);

// ---- the url ----

static Str value_of(const PQconninfoOption *parts, const char *keyword)
{
    for (; parts->keyword != NULL; parts++) {
        if (strcmp(parts->keyword, keyword) == 0) {
            return str_from(parts->val);
        }
    }
    return STR_EMPTY;
}

// Items of a list with commas; an empty list has one.
static int count_items(Str list)
{
    int count = 1;
    for (size_t i = 0; i < list.len; i++) {
        count += list.ptr[i] == ',';
    }
    return count;
}

static Str item(Str list, int index)
{
    Str token = STR_EMPTY;
    for (int i = 0; i <= index; i++) {
        if (!str_split(&list, ',', &token)) {
            return STR_EMPTY;
        }
    }
    return token;
}

static bool is_address(Str name)
{
    char text[ADDRESS_SIZE];
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    return str_to_c(name, text, sizeof text) &&
           (uv_ip4_addr(text, 0, &v4) == 0 || uv_ip6_addr(text, 0, &v6) == 0);
}

// An address, or a socket's folder (an abstract socket, the default): the DNS is not asked for it.
static bool is_name(Str host)
{
    return host.len > 0 && host.ptr[0] != '/' && host.ptr[0] != '@' && !is_address(host);
}

static bool has_names(Str hosts)
{
    for (int i = 0; i < count_items(hosts); i++) {
        if (is_name(item(hosts, i))) {
            return true;
        }
    }
    return false;
}

// ---- the answer ----

static void lookup_free(DbLookup *lookup)
{
    PQconninfoFree(lookup->parts);
    buf_done(&lookup->host);
    buf_done(&lookup->hostaddr);
    buf_done(&lookup->port);
    free(lookup);
}

static void finish(DbLookup *lookup)
{
    bool full = lookup->host.full || lookup->hostaddr.full || lookup->port.full;
    if (full) {
        error_set(&lookup->unknown, ERROR_TRANSIENT, "connect: the names have too many addresses");
    }
    if (lookup->done != NULL && (full || lookup->host.len == 0)) {
        lookup->done(lookup->ctx, NULL, &lookup->unknown);
    } else if (lookup->done != NULL) {
        DbHosts hosts = {buf_c(&lookup->host), buf_c(&lookup->hostaddr), buf_c(&lookup->port)};
        lookup->done(lookup->ctx, &hosts, NULL);
    }
    lookup_free(lookup);
}

static void add(DbLookup *lookup, const char *address)
{
    Str port = item(lookup->ports, count_items(lookup->ports) == 1 ? 0 : lookup->next);
    const char *comma = lookup->host.len > 0 ? "," : "";
    buf_cstr(&lookup->host, comma);
    buf_str(&lookup->host, item(lookup->hosts, lookup->next));
    buf_printf(&lookup->hostaddr, "%s%s", comma, address);
    buf_cstr(&lookup->port, comma);
    buf_str(&lookup->port, port);
}

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    DbLookup *lookup = request->data;
    if (status != 0) {
        error_set(
            &lookup->unknown, ERROR_TRANSIENT, "connect: the name '" STR_FMT "' has no address: %s",
            STR_ARG(item(lookup->hosts, lookup->next)), uv_strerror(status));
    }
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        char address[ADDRESS_SIZE];
        if (getnameinfo(
                at->ai_addr, at->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST) ==
            0) {
            add(lookup, address);
        }
    }
    uv_freeaddrinfo(found);
    lookup->next++;
    if (!look_on(lookup)) {
        finish(lookup);
    }
}

// ---- the way through the list ----

static bool ask(DbLookup *lookup, Str host)
{
    static const struct addrinfo streams = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char name[NAME_SIZE];
    return str_to_c(host, name, sizeof name) &&
           uv_getaddrinfo(lookup->loop, &lookup->request, on_looked_up, name, NULL, &streams) == 0;
}

// true: the DNS is asked. A name that it cannot be asked for is left to libpq, which says why.
static bool look_on(DbLookup *lookup)
{
    for (; lookup->next < count_items(lookup->hosts); lookup->next++) {
        char address[ADDRESS_SIZE] = "";
        Str host = item(lookup->hosts, lookup->next);
        if (lookup->done == NULL || (is_name(host) && ask(lookup, host))) {
            return lookup->done != NULL;
        }
        if (is_address(host)) {
            str_to_c(host, address, sizeof address);
        }
        add(lookup, address);
    }
    return false;
}

DbLookup *db_lookup_start(uv_loop_t *loop, const char *url, DbLookedUp done, void *ctx)
{
    char *words = NULL;
    PQconninfoOption *parts = PQconninfoParse(url, &words);
    PQfreemem(words);
    if (parts == NULL) {
        return NULL;
    }
    Str hosts = value_of(parts, "host"), ports = value_of(parts, "port");
    int port_count = count_items(ports);
    if (!has_names(hosts) || value_of(parts, "hostaddr").len > 0 ||
        (port_count > 1 && port_count != count_items(hosts))) {
        PQconninfoFree(parts);
        return NULL;
    }
    DbLookup *lookup = xcalloc(1, sizeof *lookup);
    *lookup = (DbLookup){
        .loop = loop, .done = done, .ctx = ctx, .parts = parts, .hosts = hosts, .ports = ports};
    lookup->request.data = lookup;
    buf_init(&lookup->host, LIST_MAX);
    buf_init(&lookup->hostaddr, LIST_MAX);
    buf_init(&lookup->port, LIST_MAX);
    if (!look_on(lookup)) {
        lookup_free(lookup);
        return NULL;
    }
    return lookup;
}

void db_lookup_drop(DbLookup *lookup)
{
    if (lookup != NULL) {
        lookup->done = NULL;
        uv_cancel((uv_req_t *)&lookup->request);
    }
}
