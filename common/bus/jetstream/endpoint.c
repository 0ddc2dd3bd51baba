// SPDX-License-Identifier: Apache-2.0
// Endpoints: where what is pulled for a worker or a reader arrives.
#include <assert.h>
#include <stdio.h>

#include "common/bus/jetstream/bus_internal.h"
#include "common/bus/topology/topology.h"

void endpoint_add(Bus *bus, Endpoint *endpoint, const EndpointHandlers *handlers, void *ctx)
{
    int slot = 0;
    while (slot < BUS_ENDPOINTS_MAX && bus->endpoints[slot] != NULL) {
        slot++;
    }
    assert(slot < BUS_ENDPOINTS_MAX);
    endpoint->handlers = handlers;
    endpoint->ctx = ctx;
    endpoint->slot = slot;
    char port[LINK_PORT_SIZE];
    snprintf(port, sizeof port, "w%d", slot);
    link_port(bus->link, port);
    snprintf(
        endpoint->inbox, sizeof endpoint->inbox, "%s.%s.%u", link_inbox(bus->link), port,
        ++bus->endpoint_generation);
    bus->endpoints[slot] = endpoint;
}

void endpoint_remove(Bus *bus, Endpoint *endpoint)
{
    assert(bus->endpoints[endpoint->slot] == endpoint);
    bus->endpoints[endpoint->slot] = NULL;
    if (endpoint->acks) {
        bus_add_leaver(bus, endpoint);
    }
}

void bus_use_domain(Bus *bus, const char *domain)
{
    link_use_domain(bus->link, domain);
    snprintf(bus->service, sizeof bus->service, "%s", bus->user);
}

void bus_reader_name(Bus *bus, const char *stream, char out[READER_NAME_SIZE])
{
    topology_reader_name(out, bus->service, bus->reader_number++ % topology_reader_names(stream));
}

bool endpoint_pull(Bus *bus, const Endpoint *endpoint, size_t batch)
{
    char subject[224], request[112];
    snprintf(
        subject, sizeof subject, "$JS.API.CONSUMER.MSG.NEXT." STR_FMT ".%s",
        STR_ARG(endpoint->stream), endpoint->consumer);
    int len = snprintf(
        request, sizeof request,
        "{\"batch\":%zu,\"expires\":%d000000000,\"idle_heartbeat\":%d000000000}", batch,
        endpoint->brief ? PULL_BRIEF_S : PULL_EXPIRES_S,
        endpoint->brief ? PULL_BRIEF_HEARTBEAT_S : PULL_HEARTBEAT_S);
    return link_send(bus->link, subject, endpoint->inbox, str_of(request, (size_t)len));
}

void bus_forget_requests(Bus *bus, const void *ctx)
{
    requests_forget(bus->requests, ctx);
}
