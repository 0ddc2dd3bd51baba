// SPDX-License-Identifier: Apache-2.0
// The link's side that blocks, on a thread of libuv's pool: connecting, where the loop knows
// nothing of the connection yet, and the waits of a close, during which the loop reads and writes.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/bus/jetstream/link_internal.h"

enum {
    CONNECT_TIMEOUT_MS = 5000,
    WRITE_DEADLINE_MS = 2000, // while it connects, and of a TLS record
    PING_INTERVAL_MS = 15000, // their answers keep the connection (wire_is_dead)
    IO_BUFFER = 64 * 1024,
    SERVERS_MAX = 32,
    URL_SIZE = 512,
    QUIET_MS = 10, // without a delivery
    QUIET_MAX_MS = 1000,
};

// ---- connecting ----

typedef struct Servers {
    char *urls[SERVERS_MAX];
    int count;
} Servers;

static bool has_server(const Servers *servers, Str place)
{
    for (int i = 0; i < servers->count; i++) {
        const char *at = strstr(servers->urls[i], "://");
        Str url = str_from(at != NULL ? at + 3 : servers->urls[i]);
        while (url.len > place.len) { // what stands before it is a user
            url = str_slice(url, 1, url.len);
        }
        if (str_eq(url, place)) {
            return true;
        }
    }
    return false;
}

static void add_server(Servers *servers, Str url)
{
    if (servers->count < SERVERS_MAX && url.len > 0) {
        char *copy = xmalloc(url.len + 1);
        (void)str_to_c(url, copy, url.len + 1);
        servers->urls[servers->count++] = copy;
    }
}

// "nats://user:password@" of the first URL: the cluster names its servers without.
static Str credentials_of(Str url)
{
    size_t end = 0;
    for (size_t i = 0; i < url.len; i++) {
        end = url.ptr[i] == '@' ? i + 1 : end;
    }
    return str_slice(url, 0, end);
}

static void add_cluster(Servers *servers, const char *cluster)
{
    Str rest = str_from(cluster), url;
    Str credentials = credentials_of(str_from(servers->urls[0]));
    while (str_split(&rest, ',', &url)) {
        char text[URL_SIZE];
        Str place = str_slice(url, strlen("nats://"), url.len);
        if (has_server(servers, place)) {
            continue;
        }
        int len = snprintf(
            text, sizeof text, STR_FMT STR_FMT,
            STR_ARG(credentials.len > 0 ? credentials : STR("nats://")), STR_ARG(place));
        add_server(servers, str_of(text, len < URL_SIZE ? (size_t)len : 0));
    }
}

static natsStatus set_servers(natsOptions *options, const Link *link)
{
    Servers servers = {0};
    Str rest = str_from(link->options.url), url;
    while (str_split(&rest, ',', &url)) {
        add_server(&servers, url);
    }
    if (link->cluster != NULL && servers.count > 0) {
        add_cluster(&servers, link->cluster);
    }
    natsStatus s = natsOptions_SetServers(options, (const char **)servers.urls, servers.count);
    for (int i = 0; i < servers.count; i++) {
        free(servers.urls[i]);
    }
    return s;
}

// link.c asks for the last error; without a handler later versions print it.
static void on_nats_error(
    natsConnection *nc, natsSubscription *subscription, natsStatus status, void *closure)
{
    (void)nc;
    (void)subscription;
    (void)status;
    (void)closure;
}

static natsStatus set_options(natsOptions *options, Link *link)
{
    natsStatus s[] = {
        set_servers(options, link),
        natsOptions_SetName(options, link->options.name),
        natsOptions_SetCustomInboxPrefix(options, link->options.inbox_prefix),
        link->options.user[0] == '\0'
            ? NATS_OK
            : natsOptions_SetUserInfo(options, link->options.user, link->options.password),
        natsOptions_SetTimeout(options, CONNECT_TIMEOUT_MS),
        natsOptions_SetPingInterval(options, PING_INTERVAL_MS),
        natsOptions_SetMaxPingsOut(options, INT_MAX),
        natsOptions_SetAllowReconnect(options, false),
        natsOptions_SetWriteDeadline(options, WRITE_DEADLINE_MS),
        natsOptions_SetIOBufSize(options, IO_BUFFER),
        natsOptions_SetSendAsap(options, true), // no flusher thread
        natsOptions_SetErrorHandler(options, on_nats_error, NULL),
        wire_set_event_loop(link->connecting, options),
    };
    for (size_t i = 0; i < sizeof s / sizeof s[0]; i++) {
        if (s[i] != NATS_OK) {
            return s[i];
        }
    }
    return NATS_OK;
}

void link_block_signals(sigset_t *ret_before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

// What the server or the library says, and what to do where an operator must.
static void describe_failure(Link *link, natsStatus s)
{
    const char *text = nats_GetLastError(NULL);
    bool has_text = text != NULL && text[0] != '\0';
    bool refused =
        s == NATS_CONNECTION_AUTH_FAILED || (has_text && strstr(text, "uthorization") != NULL);
    snprintf(
        link->work_error, sizeof link->work_error, "%.140s%s",
        has_text ? text : natsStatus_GetText(s),
        refused ? " (HINT: STENTOR_NATS_USER, STENTOR_NATS_PASSWORD; nats-server has them from "
                  "'stentor init files' or 'stentor nats-config': reload it after a change)"
                : "");
}

void link_work_connect(uv_work_t *work)
{
    Link *link = work->data;
    natsOptions *options = NULL;
    sigset_t before;
    link_block_signals(&before);
    natsStatus s = natsOptions_Create(&options);
    if (s == NATS_OK) {
        s = set_options(options, link);
    }
    if (s == NATS_OK) {
        s = natsConnection_Connect(&link->connecting->nc, options);
    }
    if (s != NATS_OK) {
        link->connecting->nc = NULL;
        describe_failure(link, s);
    }
    natsOptions_Destroy(options);
    link->work_status = s;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// ---- the waits of a close ----

static bool is_up(const Link *link)
{
    return natsConnection_Status(link->wire->nc) == NATS_CONN_STATUS_CONNECTED;
}

static int64_t count_delivered(const Link *link)
{
    int64_t sum = 0;
    for (size_t i = 0; i < link->port_count; i++) {
        int64_t delivered = 0;
        if (link->ports[i].subscription != NULL) {
            natsSubscription_GetDelivered(link->ports[i].subscription, &delivered);
        }
        sum += delivered;
    }
    return sum;
}

// As long as the server works off a pull request of ours: with the subscription gone it would lose
// the redelivery that it is about to send (link_ask_at_close).
static void wait_for_quiet(Link *link)
{
    int64_t seen = -1, delivered = 0;
    for (int waited = 0; waited < QUIET_MAX_MS && seen != delivered && is_up(link);
         waited += QUIET_MS) {
        seen = delivered;
        natsConnection_FlushTimeout(link->wire->nc, LINK_FLUSH_TIMEOUT_MS);
        nats_Sleep(QUIET_MS);
        delivered = count_delivered(link);
    }
}

static void drain_ports(Link *link)
{
    bool draining[LINK_PORTS_MAX] = {false};
    for (size_t i = 0; i < link->port_count; i++) {
        natsSubscription *subscription = link->ports[i].subscription;
        draining[i] = subscription != NULL &&
                      natsSubscription_DrainTimeout(subscription, LINK_FLUSH_TIMEOUT_MS) == NATS_OK;
    }
    for (size_t i = 0; i < link->port_count; i++) {
        if (draining[i]) {
            natsSubscription_WaitForDrainCompletion(
                link->ports[i].subscription, LINK_FLUSH_TIMEOUT_MS);
        }
    }
}

void link_work_quiesce(uv_work_t *work)
{
    Link *link = work->data;
    sigset_t before;
    link_block_signals(&before);
    if (is_up(link)) {
        natsConnection_FlushTimeout(link->wire->nc, LINK_FLUSH_TIMEOUT_MS);
    }
    if (is_up(link) && link->ask_count > 0) {
        wait_for_quiet(link);
    }
    if (is_up(link)) {
        drain_ports(link);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// Stops at the first that is not answered: the others would not be either.
static void ask_all(Link *link)
{
    natsStatus s = NATS_OK;
    for (size_t i = 0; i < link->ask_count && s == NATS_OK; i++) {
        natsMsg *reply = NULL;
        s = natsConnection_RequestString(
            &reply, link->wire->nc, link->asks[i], "", LINK_FLUSH_TIMEOUT_MS);
        natsMsg_Destroy(reply);
    }
}

void link_work_close(uv_work_t *work)
{
    Link *link = work->data;
    sigset_t before;
    link_block_signals(&before);
    if (is_up(link)) {
        ask_all(link);
        for (size_t i = 0; i < link->return_count; i++) {
            natsConnection_PublishString(link->wire->nc, link->returns[i], "-NAK");
        }
        natsConnection_FlushTimeout(link->wire->nc, LINK_FLUSH_TIMEOUT_MS);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
