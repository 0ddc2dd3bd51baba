// SPDX-License-Identifier: Apache-2.0
#include "services/cli/manage/status_wait.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/config/channel_health.h"
#include "common/session/session.h"
#include "services/cli/config/config_walk.h"

typedef struct Wanted {
    const char *channel;
    json_t *wait;
    Arena *arena;
} Wanted;

static bool take_health(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Wanted *wanted = ctx;
    arena_reset(wanted->arena);
    const Stentor__V1__ChannelHealth *entry = (const Stentor__V1__ChannelHealth *)event_unpack(
        &stentor__v1__channel_health__descriptor, message->payload, wanted->arena, NULL);
    if (reason != NULL || entry == NULL || entry->down_since_us == 0 ||
        strcmp(entry->vendor, "smtp") != 0 || // of another one the next of its route takes over
        strcmp(channel_name((Channel)entry->channel), wanted->channel) != 0) {
        return true;
    }
    char since[CLOCK_RFC3339_SIZE];
    clock_format(entry->down_since_us, since);
    json_decref(wanted->wait);
    wanted->wait =
        json_pack("{s:s, s:s, s:s}", "for", entry->vendor, "since", since, "reason", entry->reason);
    return true;
}

static bool is_under_way(const json_t *row)
{
    static const char *const names[] = {"queued", "rendering", "sending"};
    const char *status = json_string_value(json_object_get(row, "status"));
    for (size_t i = 0; status != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(status, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

json_t *status_wait(const Cli *cli, const json_t *row)
{
    Error err = {0};
    Session session;
    Wanted wanted = {.channel = json_string_value(json_object_get(row, "channel"))};
    if (!is_under_way(row) || wanted.channel == NULL) {
        return NULL;
    }
    bool ok = session_open(&session, &cli->settings.session, &err);
    if (ok) {
        wanted.arena = arena_new(0);
        ConfigPart part = {.filter = "cfg." CHANNEL_HEALTH_KIND "." CHANNEL_HEALTH_TENANT ".>"};
        ok = config_walk(&session, &part, take_health, &wanted, &err);
        arena_free(wanted.arena);
        session_close(&session);
    }
    if (!ok) {
        cli_note(cli, "whether its channel can be reached is not known: %s", err.text);
    }
    return wanted.wait;
}
