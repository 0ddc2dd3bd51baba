// SPDX-License-Identifier: Apache-2.0
#include "common/model/ladder.h"

#include <assert.h>

enum { JITTER_PER_CENT = 10 };

Ladder ladder_default(void)
{
    return (Ladder){.rung_s = {300, 900, 3600, 4 * 3600, 12 * 3600}, .count = 5};
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
