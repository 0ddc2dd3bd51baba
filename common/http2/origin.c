// SPDX-License-Identifier: Apache-2.0
// Whose turn it is, and when a connection is opened: a queue in lanes for each host and port, a few
// connections, and of these the one with the fewest calls takes the next. Another one is opened
// when all that are there are full; while one has not given its first answer yet it is waited for.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/http2/http2_internal.h"

enum { UNPROVEN_MS = 1000, HTTPS = 443 };

static char *authority_of(const GuardedUrl *url)
{
    char text[GUARD_HOST_MAX + 16];
    bool is_6 = strchr(url->host, ':') != NULL;
    int len = snprintf(text, sizeof text, is_6 ? "[%s]" : "%s", url->host);
    if (url->port != HTTPS) {
        snprintf(text + len, sizeof text - (size_t)len, ":%u", (unsigned)url->port);
    }
    return xstrdup(text);
}

Http2Origin *http2_origin_of(Http2Client *client, const GuardedUrl *url, const char *pool)
{
    char name[GUARD_HOST_MAX + 16 + HTTP2_POOL_MAX];
    int len = snprintf(name, sizeof name, "%s:%u %s", url->host, (unsigned)url->port, pool);
    Http2Origin *origin = map_get(client->origins, str_of(name, (size_t)len));
    if (origin == NULL) {
        origin = xcalloc(1, sizeof *origin);
        origin->client = client;
        origin->url = *url;
        origin->authority = authority_of(url);
        origin->connects = client->connects_per_s;
        origin->connects_at_ms = uv_now(client->loop);
        map_put(client->origins, str_from(name), origin);
    }
    return origin;
}

void http2_origin_free(void *value)
{
    Http2Origin *origin = value;
    free(origin->authority);
    free(origin);
}

bool http2_origin_is_unused(const Http2Origin *origin)
{
    return origin->waiting == 0 && origin->connections == NULL && origin->lookup == NULL;
}

// ---- the queue ----

void http2_queue_push(Http2Call *call)
{
    Http2Origin *origin = call->origin;
    int lane = call->lane;
    call->next = NULL;
    *(origin->last[lane] == NULL ? &origin->first[lane] : &origin->last[lane]->next) = call;
    origin->last[lane] = call;
    origin->waiting++;
    http2_origin_touch(origin);
}

void http2_queue_remove(Http2Call *call)
{
    Http2Origin *origin = call->origin;
    int lane = call->lane;
    Http2Call *before = NULL;
    for (Http2Call *at = origin->first[lane]; at != NULL; before = at, at = at->next) {
        if (at == call) {
            *(before == NULL ? &origin->first[lane] : &before->next) = at->next;
            origin->last[lane] = origin->last[lane] == at ? before : origin->last[lane];
            origin->waiting--;
            return;
        }
    }
}

static Http2Call *first_of(const Http2Origin *origin)
{
    for (int lane = 0; lane < HTTP_CALL_LANES; lane++) {
        if (origin->first[lane] != NULL) {
            return origin->first[lane];
        }
    }
    return NULL;
}

// ---- connections ----

static size_t room_of(const Http2Connection *connection)
{
    return connection->state == HTTP2_READY ? http2_session_room(connection->session) : 0;
}

static Http2Connection *roomiest(const Http2Origin *origin)
{
    Http2Connection *best = NULL;
    for (Http2Connection *at = origin->connections; at != NULL; at = at->next) {
        if (room_of(at) > 0 && (best == NULL || room_of(at) > room_of(best))) {
            best = at;
        }
    }
    return best;
}

// It is being opened, or has just been: its answer shows whether another one is needed.
static bool is_expected(const Http2Connection *connection, uint64_t now)
{
    if (connection->state != HTTP2_READY) {
        return true;
    }
    return !http2_session_is_draining(connection->session) &&
           !http2_session_is_proven(connection->session) &&
           now - connection->ready_ms < UNPROVEN_MS;
}

static bool may_connect(Http2Origin *origin)
{
    const Http2Client *client = origin->client;
    uint64_t now = uv_now(client->loop);
    size_t usable = 0;
    for (const Http2Connection *at = origin->connections; at != NULL; at = at->next) {
        if (is_expected(at, now)) {
            return false;
        }
        usable += !http2_session_is_draining(at->session);
    }
    double per_s = client->connects_per_s;
    double room = origin->connects + per_s * (double)(now - origin->connects_at_ms) / 1000.0;
    origin->connects = room < per_s ? room : per_s;
    origin->connects_at_ms = now;
    // Those that drain end by themselves; there are as many again at most.
    return origin->lookup == NULL && usable < client->connections &&
           origin->connection_count < 2 * client->connections && origin->connects >= 1.0;
}

// Every address of the name is checked, the first is taken; the connection checks it once more.
static void take_addresses(Http2Origin *origin, const DnsAddresses *found)
{
    Error err = {0};
    if (!dns_check(found, &origin->client->guard, origin->url.host, &err)) {
        http2_origin_failed(origin, HTTP_FAILURE_BLOCKED, err.kind, err.text);
        return;
    }
    http2_connection_open(origin, &found->list[0]);
}

static void on_found(void *ctx, const DnsAddresses *found, const Error *err)
{
    Http2Origin *origin = ctx;
    Http2Client *client = origin->client;
    origin->lookup = NULL;
    if (err != NULL) {
        http2_origin_failed(origin, HTTP_FAILURE_DNS, err->kind, err->text);
    } else {
        take_addresses(origin, found);
    }
    http2_client_settle(client);
}

static void resolve(Http2Origin *origin)
{
    Http2Client *client = origin->client;
    Error err = {0};
    if (client->dns == NULL) {
        client->dns = dns_new(client->loop, client->dns_servers, &err);
        if (client->dns == NULL) {
            http2_origin_failed(origin, HTTP_FAILURE_DNS, err.kind, err.text);
            return;
        }
        client->handles++;
    }
    const DnsAddresses *known = dns_known(client->dns, origin->url.host);
    if (known != NULL) {
        DnsAddresses copy = *known;
        take_addresses(origin, &copy);
    } else {
        origin->lookup = dns_find(client->dns, origin->url.host, on_found, origin);
    }
}

static void connect_one(Http2Origin *origin)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    origin->connects -= 1.0;
    if (!origin->url.is_address) {
        resolve(origin);
        return;
    }
    if (uv_ip4_addr(origin->url.host, origin->url.port, &in) == 0) {
        memcpy(&address, &in, sizeof in);
    } else if (uv_ip6_addr(origin->url.host, origin->url.port, &in6) == 0) {
        memcpy(&address, &in6, sizeof in6);
    }
    http2_connection_open(origin, &address);
}

static bool start_one(Http2Connection *connection, Http2Call *call)
{
    http2_queue_remove(call);
    call->step = HTTP2_CALL_RUNNING;
    if (!http2_session_start(connection->session, &call->exchange)) {
        call->step = HTTP2_CALL_WAITING; // the session takes no more: another connection
        http2_queue_push(call);
        return false;
    }
    connection->used_ms = uv_now(connection->client->loop);
    return true;
}

void http2_origin_start(Http2Origin *origin)
{
    Http2Call *call;
    Http2Connection *connection;
    while ((call = first_of(origin)) != NULL && (connection = roomiest(origin)) != NULL) {
        start_one(connection, call);
    }
    if (call != NULL && may_connect(origin)) {
        connect_one(origin);
    }
    for (connection = origin->connections; connection != NULL;) {
        Http2Connection *next = connection->next; // a flush may end it
        http2_connection_flush(connection);
        connection = next;
    }
}

void http2_origin_failed(Http2Origin *origin, HttpFailure failure, ErrorKind kind, const char *why)
{
    for (const Http2Connection *at = origin->connections; at != NULL; at = at->next) {
        if (at->state != HTTP2_READY || !http2_session_is_draining(at->session)) {
            return; // they wait for that one
        }
    }
    for (Http2Call *call; (call = first_of(origin)) != NULL;) {
        http2_call_end(call, HTTP_NEVER_SENT, failure, kind, why);
    }
}

void http2_origin_cancel(Http2Origin *origin)
{
    if (origin->lookup != NULL) {
        dns_cancel(origin->lookup);
        origin->lookup = NULL;
    }
    Http2Connection *connection;
    while ((connection = origin->connections) != NULL) {
        if (connection->state == HTTP2_READY) {
            http2_session_leave(connection->session);
            http2_connection_flush(connection);
        }
        http2_connection_end(connection, HTTP_FAILURE_OTHER, ERROR_CANCELLED, "cancelled");
    }
}
