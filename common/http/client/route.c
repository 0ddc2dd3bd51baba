// SPDX-License-Identifier: Apache-2.0
// Where a call may go: its URL and the addresses of its name before it gets its turn, and the
// address once more when libcurl opens the socket.
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/http/client/client_internal.h"

// From the loop, like every end.
static void refuse(HttpCall *call, HttpFailure failure)
{
    call->step = CALL_REFUSED;
    call->blocked = failure == HTTP_FAILURE_BLOCKED;
    call_watch(call);
}

// "::ADDRESS:PORT": whatever the URL says, the connection goes there; Host, SNI and the
// certificate's name stay the URL's.
static void pin(HttpCall *call, const struct sockaddr_storage *address)
{
    char text[INET6_ADDRSTRLEN] = "";
    char line[PIN_MAX];
    bool is_6 = address->ss_family == AF_INET6;
    if (is_6) {
        struct sockaddr_in6 in;
        memcpy(&in, address, sizeof in);
        inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
    } else {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    }
    snprintf(line, sizeof line, is_6 ? "::[%s]:%u" : "::%s:%u", text, (unsigned)call->url.port);
    call->address = *address;
    if (strcmp(line, call->pinned) != 0) {
        curl_slist_free_all(call->pin);
        call->pin = curl_slist_append(NULL, line);
        assert(call->pin != NULL);
        memcpy(call->pinned, line, strlen(line) + 1);
    }
    curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, call->pin);
}

static void take_addresses(HttpCall *call, const DnsAddresses *found)
{
    if (!dns_check(found, &call->client->guard, call->url.host, &call->refused)) {
        refuse(call, HTTP_FAILURE_BLOCKED);
        return;
    }
    pin(call, &found->list[0]);
    queue_push(call);
}

static void on_found(void *ctx, const DnsAddresses *found, const Error *err)
{
    HttpCall *call = ctx;
    HttpClient *client = call->client;
    call->lookup = NULL;
    call->origin->resolving--;
    if (err != NULL) {
        call->refused = *err;
        refuse(call, HTTP_FAILURE_DNS);
    } else {
        take_addresses(call, found);
        client_start_waiting(client);
    }
}

static void resolve(HttpCall *call)
{
    HttpClient *client = call->client;
    if (client->dns == NULL) {
        client->dns = dns_new(client->loop, client->dns_servers, &call->refused);
        if (client->dns == NULL) {
            refuse(call, HTTP_FAILURE_DNS);
            return;
        }
        client->handles++;
    }
    const DnsAddresses *known = dns_known(client->dns, call->url.host);
    if (known != NULL) {
        take_addresses(call, known);
        return;
    }
    call->step = CALL_RESOLVING;
    call->origin->resolving++;
    call->lookup = dns_find(client->dns, call->url.host, on_found, call);
    call_watch(call);
}

void route_call(HttpCall *call, const char *url)
{
    HttpClient *client = call->client;
    if (!client->guarded) {
        call->origin = &client->all;
        queue_push(call);
    } else if (!guard_url(&client->guard, url, &call->url, &call->refused)) {
        refuse(call, HTTP_FAILURE_BLOCKED);
    } else {
        call->origin = origin_of(client, &call->url);
        if (call->url.is_address) {
            curl_easy_setopt(call->easy, CURLOPT_CONNECT_TO, NULL);
            queue_push(call);
        } else {
            resolve(call);
        }
    }
}

void route_failed(HttpCall *call)
{
    HttpClient *client = call->client;
    if (client->dns != NULL && !call->url.is_address && call->opened_at_ms != 0) {
        dns_avoid(client->dns, call->url.host, &call->address);
    }
}

curl_socket_t route_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    HttpCall *call = ctx;
    HttpClient *client = call->client;
    if (purpose != CURLSOCKTYPE_IPCXN) {
        return CURL_SOCKET_BAD;
    }
    if (client->guarded && !guard_address(&client->guard, &address->addr, &call->refused)) {
        call->blocked = true;
        return CURL_SOCKET_BAD;
    }
    int fd = socket(
        address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
    if (fd >= 0 && socket_add(client, fd, call->origin) == NULL) {
        close(fd);
        fd = CURL_SOCKET_BAD;
    }
    call->opened_at_ms = uv_now(client->loop);
    call_watch(call);
    return fd;
}
