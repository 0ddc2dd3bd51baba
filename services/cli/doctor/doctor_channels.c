// SPDX-License-Identifier: Apache-2.0
// Vendors that cannot be reached or fail, as dispatchers have stored it in CONFIG: their mails wait
// or go elsewhere, and nothing else shows it from here.
#include "common/base/clock.h"
#include "common/codec/event.h"
#include "common/config/channel_health.h"
#include "services/cli/config/config_walk.h"
#include "services/cli/doctor/doctor.h"

typedef struct Channels {
    Doctor *doctor;
    int down;
} Channels;

static void say_suspended(Channels *channels, const Stentor__V1__ChannelHealth *entry)
{
    Arena *arena = channels->doctor->cli->arena;
    char until[CLOCK_RFC3339_SIZE] = "it is resumed";
    if (entry->until_us > 0) {
        clock_format(entry->until_us, until);
    }
    channels->down++;
    doctor_say(
        channels->doctor, arena_printf(arena, "channel %s", channel_name((Channel)entry->channel)),
        CHECK_FAIL,
        arena_printf(
            arena,
            "%.32s of '%.64s' is suspended by %.64s until %s: %.*s (HINT: stentor channel resume "
            "%.32s)",
            entry->vendor, entry->tenant, entry->noted_by, until, CHANNEL_HEALTH_REASON_MAX,
            entry->reason, entry->vendor));
}

static const char *down_text(
    const Doctor *doctor, const Stentor__V1__ChannelHealth *entry, const char *since)
{
    Arena *arena = doctor->cli->arena;
    const char *age = doctor_age(doctor->cli, clock_now_us() - entry->down_since_us);
    if (str_eq(str_from(entry->vendor), STR("smtp"))) {
        return arena_printf(
            arena,
            "smtp cannot be reached since %s (%s): %.*s. Notifications wait and are sent when it "
            "answers (HINT: STENTOR_SMTP_URL of stentor-dispatcher, its log and /readyz)",
            since, age, CHANNEL_HEALTH_REASON_MAX, entry->reason);
    }
    const char *does = entry->refused ? "refuses it" : "fails";
    return arena_printf(
        arena,
        "%.32s with the credential %.64s of '%.64s' %s since %s (%s): %.*s: mails go to the next "
        "vendor of their route, and wait where there is none (HINT: stentor channel test %.32s "
        "%.64s)",
        entry->vendor, entry->credential, entry->tenant, does, since, age,
        CHANNEL_HEALTH_REASON_MAX, entry->reason, entry->vendor, entry->credential);
}

static bool take_health(void *ctx, const BusMessage *message, const char *reason, Error *err)
{
    (void)err;
    Channels *channels = ctx;
    Arena *arena = channels->doctor->cli->arena;
    const Stentor__V1__ChannelHealth *entry = (const Stentor__V1__ChannelHealth *)event_unpack(
        &stentor__v1__channel_health__descriptor, message->payload, arena, NULL);
    if (reason != NULL || entry == NULL) {
        return true; // what cannot be read is a line of its own (check_config)
    }
    ChannelStatus status = channel_health_status(entry, clock_now_us());
    if (status == CHANNEL_DISABLED) {
        say_suspended(channels, entry);
    }
    if (status == CHANNEL_DISABLED || entry->down_since_us == 0) {
        return true;
    }
    char since[CLOCK_RFC3339_SIZE];
    clock_format(entry->down_since_us, since);
    channels->down++;
    doctor_say(
        channels->doctor, arena_printf(arena, "channel %s", channel_name((Channel)entry->channel)),
        CHECK_FAIL, down_text(channels->doctor, entry, since));
    return true;
}

void doctor_channels(Doctor *doctor)
{
    Error err = {0};
    Channels channels = {.doctor = doctor};
    ConfigPart part = {.filter = "cfg." CHANNEL_HEALTH_KIND ".>"};
    if (!config_walk(&doctor->session, &part, take_health, &channels, &err)) {
        doctor_say(doctor, "channels", CHECK_FAIL, err.text);
    } else if (channels.down == 0) {
        doctor_say(doctor, "channels", CHECK_OK, "no dispatcher has found its vendor away");
    }
}
