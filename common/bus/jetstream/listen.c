// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/listen.h"

#include <assert.h>
#include <string.h>

#include "common/bus/jetstream/bus_internal.h"

static bool covers(Str pattern, Str subject)
{
    Str want = STR_EMPTY, is = STR_EMPTY;
    bool more = true, left = true;
    while (more && left) {
        more = str_split(&pattern, '.', &want);
        if (more && str_eq(want, STR(">"))) {
            return subject.len > 0;
        }
        left = str_split(&subject, '.', &is);
        if (more && left && !str_eq(want, STR("*")) && !str_eq(want, is)) {
            return false;
        }
    }
    return !more && !left;
}

void listen_take(Bus *bus, void *native)
{
    AckSubject none = {0};
    BusMessage message = {0};
    bus_message_fill(&message, native, &none);
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        const char *subject = bus->listens[i].subject;
        if (subject != NULL && covers(str_from(subject), message.subject)) {
            bus->listens[i].on_heard(bus->listens[i].ctx, &message);
            return;
        }
    }
}

void bus_listen(Bus *bus, const char *subject, BusHeard on_heard, void *ctx)
{
    size_t i = 0;
    while (i < LINK_LISTENS_MAX && bus->listens[i].subject != NULL) {
        i++;
    }
    assert(i < LINK_LISTENS_MAX);
    bus->listens[i].subject = subject;
    bus->listens[i].on_heard = on_heard;
    bus->listens[i].ctx = ctx;
    link_listen(bus->link, subject);
}

void bus_unlisten(Bus *bus, const char *subject)
{
    for (size_t i = 0; i < LINK_LISTENS_MAX; i++) {
        if (bus->listens[i].subject == subject) {
            bus->listens[i].subject = NULL;
            link_unlisten(bus->link, subject);
            return;
        }
    }
}
