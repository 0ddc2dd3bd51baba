// SPDX-License-Identifier: Apache-2.0
#include "common/model/rules/ladder.h"

#include <assert.h>

enum { JITTER_PER_CENT = 10 };

Ladder ladder_default(void)
{
    return (Ladder){.rung_s = {300, 900, 3600, 4 * 3600, 12 * 3600}, .count = 5};
}

static Ladder default_of(Channel channel)
{
    // A busy telephone is free again soon, and a call long after its occasion only disturbs.
    const Ladder voice = {.rung_s = {120, 600}, .count = 2};
    return channel == CHANNEL_VOICE ? voice : ladder_default();
}

bool ladder_parse(Str text, Ladder *ret)
{
    Ladder ladder = {.count = 0};
    Str rest = text;
    Str word;
    while (str_split(&rest, ',', &word)) {
        int64_t seconds;
        bool good = ladder.count < LADDER_MAX && str_to_i64(str_trim(word), &seconds) &&
                    seconds >= 1 && seconds <= LADDER_WAIT_MAX_S;
        if (!good) {
            return false;
        }
        ladder.rung_s[ladder.count++] = (int32_t)seconds;
    }
    if (ladder.count == 0) {
        return false;
    }
    *ret = ladder;
    return true;
}

static bool refuse(const char *what, Str text, Error *err)
{
    return error_set(
        err, ERROR_CONFIG,
        "'%.*s' is %s; expected up to %d whole numbers from 1 to %d, separated by commas, or for "
        "each channel: email=300,900;sms=60",
        STR_ARG(str_slice(text, 0, 48)), what, (int)LADDER_MAX, (int)LADDER_WAIT_MAX_S);
}

static bool read_channel(Str entry, bool named[CHANNEL_COUNT], Ladders *ladders, Error *err)
{
    ptrdiff_t sign = str_find(entry, '=');
    if (sign < 0) {
        return refuse("no <channel>=<waits>", entry, err);
    }
    Channel channel = CHANNEL_NONE;
    Str name = str_trim(str_slice(entry, 0, (size_t)sign));
    if (!channel_from_name(name, &channel)) {
        return refuse("no channel", name, err);
    }
    if (named[channel]) {
        return refuse("named twice", name, err);
    }
    named[channel] = true;
    Str waits = str_slice(entry, (size_t)sign + 1, entry.len);
    return ladder_parse(waits, &ladders->of[channel]) || refuse("no ladder", waits, err);
}

bool ladders_parse(Str text, Ladders *ret, Error *err)
{
    Ladders ladders;
    bool named[CHANNEL_COUNT] = {false};
    Ladder all = ladder_default();
    bool single = str_find(text, '=') < 0;
    if (single && !ladder_parse(text, &all)) {
        return refuse("no ladder", text, err);
    }
    for (int channel = 0; channel < CHANNEL_COUNT; channel++) {
        ladders.of[channel] = single ? all : default_of((Channel)channel);
    }
    Str entry;
    while (!single && str_split(&text, ';', &entry)) {
        if (!read_channel(entry, named, &ladders, err)) {
            return false;
        }
    }
    *ret = ladders;
    return true;
}

const Ladder *ladders_of(const Ladders *ladders, Channel channel)
{
    unsigned value = (unsigned)channel;
    return &ladders->of[value < CHANNEL_COUNT ? value : CHANNEL_NONE];
}

bool ladder_own(const Ladder *base, const OwnRetries *own, Ladder *ret, Error *err)
{
    Ladder ladder = *base;
    if (own->count > LADDER_MAX || own->max_attempts > LADDER_MAX + 1) {
        return error_set(
            err, ERROR_PERMANENT, "%zu waits and %u attempts: expected at most %d and %d",
            own->count, own->max_attempts, (int)LADDER_MAX, LADDER_MAX + 1);
    }
    for (size_t i = 0; i < own->count; i++) {
        if (own->wait_s[i] < 1 || own->wait_s[i] > LADDER_WAIT_MAX_S) {
            return error_set(
                err, ERROR_PERMANENT, "a wait of %u s: expected 1 to %d", own->wait_s[i],
                (int)LADDER_WAIT_MAX_S);
        }
        ladder.rung_s[i] = (int32_t)own->wait_s[i];
        ladder.count = (uint32_t)i + 1;
    }
    for (uint32_t i = ladder.count; i > 0 && i + 1 < own->max_attempts; i++) {
        ladder.rung_s[i] = ladder.rung_s[i - 1];
    }
    ladder.count = own->max_attempts > 0 ? own->max_attempts - 1 : ladder.count;
    *ret = ladder;
    return true;
}

bool ladder_next(
    const Ladder *ladder, uint32_t rung, int64_t now_us, uint32_t retry_after_ms, double random01,
    int64_t *ret_due_us)
{
    assert(random01 >= 0.0 && random01 < 1.0);
    if (rung >= ladder->count) {
        return false;
    }
    int64_t wait_ms = (int64_t)ladder->rung_s[rung] * 1000;
    if (retry_after_ms > wait_ms) {
        const int64_t max_ms = (int64_t)LADDER_WAIT_MAX_S * 1000;
        wait_ms = retry_after_ms < max_ms ? retry_after_ms : max_ms;
    }
    int64_t jitter_us = (int64_t)((double)(wait_ms * 1000 / 100 * JITTER_PER_CENT) * random01);
    *ret_due_us = now_us + wait_ms * 1000 + jitter_us;
    return true;
}

static bool is_one_of(Str enhanced, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (str_eq(enhanced, str_from(*list))) {
            return true;
        }
    }
    return false;
}

static ReplyClass classify_transient(int smtp_code, Str enhanced)
{
    // Mailbox full, system full, too many recipients, a security policy that counts.
    static const char *const throttles[] = {"4.2.2", "4.3.1", "4.5.3", "4.7.0", NULL};
    // 421 closes a busy channel, 450 is a busy mailbox or greylisting, 452 is out of storage or too
    // many recipients.
    bool by_code = smtp_code == 421 || smtp_code == 450 || smtp_code == 452;
    bool by_policy = smtp_code == 451 && str_starts(enhanced, STR("4.7."));
    return by_code || by_policy || is_one_of(enhanced, throttles) ? REPLY_THROTTLED : REPLY_RETRY;
}

ReplyClass reply_classify(int smtp_code, Str enhanced)
{
    // Bad mailbox, bad system, bad syntax, moved without a forward, null MX (RFC 7505). A 550 alone
    // may as well be policy.
    static const char *const bad_addresses[] = {"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", NULL};
    if (smtp_code >= 200 && smtp_code <= 299) {
        return REPLY_ACCEPTED;
    }
    if (smtp_code >= 400 && smtp_code <= 499) {
        return classify_transient(smtp_code, enhanced);
    }
    if (smtp_code >= 500 && smtp_code <= 599) {
        return is_one_of(enhanced, bad_addresses) ? REPLY_BAD_ADDRESS : REPLY_TERMINAL;
    }
    return REPLY_RETRY; // no reply, or one that a server may not give at the end
}

const char *reply_class_name(ReplyClass reply)
{
    switch (reply) {
    case REPLY_ACCEPTED:
        return "accepted";
    case REPLY_RETRY:
        return "retry";
    case REPLY_THROTTLED:
        return "throttled";
    case REPLY_TERMINAL:
        return "terminal";
    case REPLY_BAD_ADDRESS:
        return "bad_address";
    case REPLY_CONFIG:
        return "config";
    case REPLY_ELSEWHERE:
        return "elsewhere";
    }
    return "";
}

bool reply_class_from_name(Str name, ReplyClass *ret)
{
    for (ReplyClass reply = REPLY_ACCEPTED; reply <= REPLY_ELSEWHERE; reply++) {
        if (str_eq(name, str_from(reply_class_name(reply)))) {
            *ret = reply;
            return true;
        }
    }
    return false;
}
