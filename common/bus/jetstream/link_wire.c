// SPDX-License-Identifier: Apache-2.0
// nats.c on the loop, through its event-loop interface. nats.c may neither reconnect by itself nor
// find its connection dead (its own reconnecting runs on a thread that attaches to the loop; its
// timer would close a socket that the loop polls): link_work.c forbids the first, wire_is_dead
// replaces the second. So connections end on the loop's thread alone.
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/base/arena.h"
#include "common/bus/jetstream/link_internal.h"

enum {
    SILENCE_MS = 45000, // three PINGs unanswered (link_work.c)
    STALL_MS = 2000,
    SUSPECT_MS = 500, // it looks dead for so long, with turns of the loop between
    READ_ROUNDS_MAX = 64,
    READ_AGAIN_BYTES = 32 * 1024, // half of what one read may bring
    CUT_READS_MAX = 1024,
    TLS_HEADER = 5, // type, version, length
    TLS_UNWRITTEN_MAX = 64 * 1024,
};

// ---- what nats.c calls ----

static void unref(Wire *wire)
{
    if (--wire->parts == 0) {
        free(wire);
    }
}

static void on_poll_closed(uv_handle_t *handle)
{
    Wire *wire = handle->data;
    Link *link = wire->link;
    unref(wire);
    link_on_handle_closed(link);
}

static natsStatus on_nats_attach(void **ret, void *wire, natsConnection *nc, natsSock socket)
{
    (void)nc; // not ours before it is connected
    ((Wire *)wire)->socket = socket;
    *ret = wire;
    return NATS_OK;
}

// It is always read; the end of that is the end of the connection. Until 3.9.1 nats.c closes the
// socket after this call, from then on here: in any case after the loop has let go of it.
static natsStatus on_nats_read(void *data, bool add)
{
    Wire *wire = data;
    if (add || wire->closed) {
        return NATS_OK;
    }
    wire->closed = true;
    if (wire->polled) {
        uv_close((uv_handle_t *)&wire->poll, on_poll_closed);
    }
#if NATS_VERSION_NUMBER >= 0x030902
    natsConnection_ProcessCloseEvent(&wire->socket);
#endif
    return NATS_OK;
}

static natsStatus on_nats_write(void *data, bool add)
{
    Wire *wire = data;
    atomic_store(&wire->unwritten, add);
    uv_thread_t self = uv_thread_self();
    if (add && !uv_thread_equal(&self, &wire->link->thread)) {
        uv_async_send(&wire->link->async); // the loop may sleep
    }
    return NATS_OK;
}

static natsStatus on_nats_detach(void *data)
{
    (void)data;
    return NATS_OK;
}

natsStatus wire_set_event_loop(Wire *wire, natsOptions *options)
{
    return natsOptions_SetEventLoop(
        options, wire, on_nats_attach, on_nats_read, on_nats_write, on_nats_detach);
}

// ---- reading ----

// nats.c reads a TLS record to its end, and would wait for it: so it is asked when the first one is
// whole. true: it is, or there is no TLS.
static bool has_whole_record(Wire *wire, bool ended)
{
    unsigned char head[TLS_HEADER];
    if (ended || (wire->tls_known && !wire->tls)) {
        return true;
    }
    ssize_t got = recv(wire->socket, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
    if (got <= 0) {
        return true; // nats.c sees why
    }
    if (!wire->tls_known) { // NATS begins every line with a letter, '+' or '-'
        wire->tls = head[0] < ' ';
        wire->tls_known = true;
    }
    if (!wire->tls) {
        return true;
    }
    int there = 0, record = TLS_HEADER;
    if (got == TLS_HEADER) {
        record += head[3] << 8 | head[4];
    }
    bool whole = ioctl(wire->socket, FIONREAD, &there) == 0 && there >= record;
    // Readable all the same: the kernel has no room for the rest before this part is read, and the
    // rest is on its way.
    whole = whole || wire->readable_at == record;
    int wanted = whole ? 1 : record; // until then it is not readable
    if (wanted != wire->readable_at) {
        (void)setsockopt(wire->socket, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted);
        wire->readable_at = wanted;
    }
    return whole;
}

// What has ended is read to its end: libuv does not poll a socket with an error again.
static void read_all(Wire *wire, bool ended)
{
    Link *link = wire->link;
    bool more = true;
    wire->heard_ms = (int64_t)uv_now(link->loop);
    for (int i = 0; i < READ_ROUNDS_MAX && more && !wire->closed; i++) {
        size_t bytes = 0;
        if (has_whole_record(wire, ended)) {
            natsConnection_ProcessReadEvent(wire->nc);
            bytes = link_hand_on(link);
        }
        more = ended || bytes >= READ_AGAIN_BYTES;
    }
}

// ---- writing, and the loop's events ----

// nats.c takes a write of nothing for the end of the connection.
static void write_some(Wire *wire)
{
    size_t before = wire_unwritten(wire);
    if (before > 0 && atomic_load(&wire->unwritten)) {
        natsConnection_ProcessWriteEvent(wire->nc);
        if (wire->closed || wire_unwritten(wire) < before) {
            wire->taken_ms = (int64_t)uv_now(wire->link->loop);
        }
    }
}

static void on_poll_ready(uv_poll_t *poll, int status, int events);

static void poll_for(Wire *wire, bool room)
{
    int events = UV_READABLE | UV_DISCONNECT | (room ? UV_WRITABLE : 0);
    if (uv_poll_start(&wire->poll, events, on_poll_ready) != 0) {
        abort(); // only for a handle that closes
    }
    wire->polled_for_room = room;
    wire->rests = false;
    wire->taken_ms = (int64_t)uv_now(wire->link->loop);
}

static void on_rest_over(uv_timer_t *timer)
{
    const Link *link = timer->data;
    if (link->wire != NULL) {
        wire_wake(link->wire);
    }
}

// Nothing waits there: a flood is read as it comes, and of TLS no part of a record rests.
static bool is_empty(const Wire *wire)
{
    int there = 0;
    return ioctl(wire->socket, FIONREAD, &there) == 0 && there == 0;
}

// The end of the connection is noticed all the same.
static void rest(Wire *wire)
{
    wire->rests = uv_poll_start(&wire->poll, UV_DISCONNECT, on_poll_ready) == 0;
    uv_timer_start(&wire->link->rest, on_rest_over, (uint64_t)wire->link->rest_ms, 0);
}

void wire_wake(Wire *wire)
{
    if (wire->rests && !wire->closed) {
        poll_for(wire, wire->polled_for_room);
    }
}

static void on_poll_ready(uv_poll_t *poll, int status, int events)
{
    Wire *wire = poll->data;
    Link *link = wire->link;
    if (events & UV_WRITABLE) {
        write_some(wire);
        if (!wire->closed && !atomic_load(&wire->unwritten)) {
            poll_for(wire, false);
        }
    }
    if (!wire->closed && (status != 0 || events & (UV_READABLE | UV_DISCONNECT))) {
        read_all(wire, status != 0 || events & UV_DISCONNECT);
    }
    if (!wire->closed && status != 0) {
        poll_for(wire, wire->polled_for_room);
    } else if (!wire->closed && link->rest_ms > 0 && !wire->polled_for_room && is_empty(wire)) {
        rest(wire);
    }
    link_on_read(link);
}

size_t wire_unwritten(const Wire *wire)
{
    int bytes = natsConnection_Buffered(wire->nc);
    return bytes > 0 ? (size_t)bytes : 0;
}

// Over TLS nats.c writes all or waits, and the server may wait for us to read. So it gets little at
// once there, and a socket that has room.
static bool has_room(const Wire *wire)
{
    struct pollfd room = {.fd = wire->socket, .events = POLLOUT};
    return !wire->tls || poll(&room, 1, 0) > 0;
}

bool wire_takes(Wire *wire)
{
    if (wire->tls && !wire->closed && wire_unwritten(wire) >= TLS_UNWRITTEN_MAX) {
        wire_write(wire);
    }
    size_t most = wire->tls ? TLS_UNWRITTEN_MAX : LINK_UNWRITTEN_MAX;
    return !wire->closed && wire_unwritten(wire) < most;
}

void wire_write(Wire *wire)
{
    if (!wire->closed && !wire->polled_for_room && atomic_load(&wire->unwritten)) {
        if (has_room(wire)) {
            write_some(wire);
        }
        if (!wire->closed && atomic_load(&wire->unwritten)) {
            poll_for(wire, true);
        }
    }
}

void wire_wait(Wire *wire, int timeout_ms)
{
    write_some(wire);
    struct pollfd ready = {.fd = wire->socket, .events = POLLIN};
    ready.events = (short)(POLLIN | (atomic_load(&wire->unwritten) ? POLLOUT : 0));
    if (wire->closed || poll(&ready, 1, timeout_ms) <= 0) {
        return;
    }
    bool ended = (ready.revents & (POLLHUP | POLLERR)) != 0;
    if ((ready.revents & POLLIN || ended) && has_whole_record(wire, ended)) {
        natsConnection_ProcessReadEvent(wire->nc);
    }
}

// ---- begin and end ----

Wire *wire_new(Link *link)
{
    Wire *wire = xcalloc(1, sizeof *wire);
    wire->link = link;
    wire->parts = 1;
    wire->readable_at = 1;
    return wire;
}

bool wire_begin(Wire *wire)
{
    if (uv_poll_init(wire->link->loop, &wire->poll, wire->socket) != 0) {
        return false;
    }
    wire->poll.data = wire;
    wire->polled = true;
    wire->parts++;
    wire->link->open_handles++;
    wire->heard_ms = (int64_t)uv_now(wire->link->loop);
    poll_for(wire, false);
    return true;
}

// After a loop that itself stood still both times are old: so it must look dead for some turns.
bool wire_is_dead(Wire *wire)
{
    int64_t now = (int64_t)uv_now(wire->link->loop);
    bool silent = now - wire->heard_ms >= SILENCE_MS;
    bool stalled = wire->polled_for_room && now - wire->taken_ms >= STALL_MS;
    if (!silent && !stalled) {
        wire->suspected_ms = 0;
    } else if (wire->suspected_ms == 0) {
        wire->suspected_ms = now;
    }
    return wire->suspected_ms != 0 && now - wire->suspected_ms >= SUSPECT_MS;
}

// With something unwritten natsConnection_Destroy would wait for the server. A socket that is shut
// ends the connection at the next read behind what has arrived.
void wire_drop(Wire *wire)
{
    if (wire == NULL) {
        return;
    }
    if (wire->nc != NULL && !wire->closed && wire_unwritten(wire) > 0) {
        shutdown(wire->socket, SHUT_RDWR);
        for (int i = 0; i < CUT_READS_MAX && !wire->closed; i++) {
            natsConnection_ProcessReadEvent(wire->nc);
        }
    }
    natsConnection_Destroy(wire->nc);
    unref(wire);
}
