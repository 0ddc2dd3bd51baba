// SPDX-License-Identifier: Apache-2.0
#include "common/routing/breaker.h"

#include <string.h>

static const int64_t SECOND_US = 1000000;

// ---- what a result says ----

static bool is_5xx(Str code)
{
    return code.len == 3 && code.ptr[0] == '5';
}

static BreakerResult answered_result(const SendResult *result)
{
    switch (result->reply) {
    case REPLY_ACCEPTED:
    case REPLY_TERMINAL:
    case REPLY_BAD_ADDRESS:
    case REPLY_ELSEWHERE:
        return BREAKER_SUCCESS;
    case REPLY_CONFIG:
        return BREAKER_CONFIG;
    case REPLY_RETRY:
        return is_5xx(result->code) ? BREAKER_FAILURE : BREAKER_NOTHING;
    case REPLY_THROTTLED:
        return BREAKER_NOTHING;
    }
    return BREAKER_NOTHING;
}

BreakerResult breaker_result(const SendResult *result)
{
    switch (result->state) {
    case SEND_ANSWERED:
        return answered_result(result);
    case SEND_UNSENT:
    case SEND_UNKNOWN:
        return BREAKER_FAILURE;
    case SEND_RELEASED:
        return BREAKER_NOTHING;
    }
    return BREAKER_NOTHING;
}

// ---- counting while it is closed ----

static void count_in_window(Breaker *breaker, bool failed, int64_t now_us)
{
    int64_t second = now_us / SECOND_US;
    BreakerSecond *slot = &breaker->window[second % BREAKER_WINDOW_S];
    if (slot->second != second) {
        *slot = (BreakerSecond){.second = second};
    }
    slot->sends++;
    slot->failures += failed ? 1 : 0;
}

static bool is_half_failing(const Breaker *breaker, int64_t now_us)
{
    uint64_t sends = 0;
    uint64_t failures = 0;
    for (size_t i = 0; i < BREAKER_WINDOW_S; i++) {
        if (breaker->window[i].second > now_us / SECOND_US - BREAKER_WINDOW_S) {
            sends += breaker->window[i].sends;
            failures += breaker->window[i].failures;
        }
    }
    return sends >= BREAKER_WINDOW_MIN && 2 * failures >= sends;
}

// Failures that began before this success are none of "in a row after it".
static void note_success(Breaker *breaker, int64_t begun_us)
{
    if (begun_us <= breaker->success_begun_us) {
        return;
    }
    breaker->success_begun_us = begun_us;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < breaker->failed_count; i++) {
        if (breaker->failed_us[i] > begun_us) {
            breaker->failed_us[kept++] = breaker->failed_us[i];
        }
    }
    breaker->failed_count = kept;
}

static void note_failure(Breaker *breaker, int64_t begun_us)
{
    if (begun_us > breaker->success_begun_us && breaker->failed_count < BREAKER_IN_ROW) {
        breaker->failed_us[breaker->failed_count++] = begun_us;
    }
}

static void forget_counts(Breaker *breaker)
{
    breaker->failed_count = 0;
    memset(breaker->window, 0, sizeof breaker->window);
}

// ---- moves ----

static int64_t next_wait_ms(const Breaker *breaker)
{
    int64_t doubled = 2 * breaker->wait_ms;
    int64_t wait_ms = doubled < BREAKER_WAIT_MIN_MS ? BREAKER_WAIT_MIN_MS : doubled;
    return wait_ms < BREAKER_WAIT_MAX_MS ? wait_ms : BREAKER_WAIT_MAX_MS;
}

static void open_it(Breaker *breaker, bool config, double random01, int64_t now_us)
{
    int64_t wait_ms = BREAKER_CONFIG_WAIT_MS;
    if (!config) {
        wait_ms = breaker->wait_ms = next_wait_ms(breaker);
    }
    breaker->state = BREAKER_OPEN;
    breaker->config = config;
    breaker->opened_at_us = now_us;
    breaker->probe_at_us = now_us + (int64_t)((double)wait_ms * (800 + 400 * random01));
    breaker->probe_begun_us = 0;
    breaker->probe_successes = 0;
    forget_counts(breaker);
}

static void close_it(Breaker *breaker, int64_t now_us)
{
    breaker->state = BREAKER_SLOW;
    breaker->config = false;
    breaker->probe_begun_us = 0;
    breaker->slow_since_us = now_us;
    breaker->slow_second = 0;
    breaker->slow_sent = 0;
    forget_counts(breaker);
}

static BreakerMove tell_closed(
    Breaker *breaker, BreakerResult result, int64_t begun_us, double random01, int64_t now_us)
{
    bool failed = result == BREAKER_FAILURE;
    if (result == BREAKER_CONFIG) {
        open_it(breaker, true, random01, now_us);
        return BREAKER_OPENS;
    }
    count_in_window(breaker, failed, now_us);
    if (!failed) {
        note_success(breaker, begun_us);
        return BREAKER_STAYS;
    }
    note_failure(breaker, begun_us);
    if (breaker->failed_count < BREAKER_IN_ROW && !is_half_failing(breaker, now_us)) {
        return BREAKER_STAYS;
    }
    open_it(breaker, false, random01, now_us);
    return BREAKER_OPENS;
}

static BreakerMove tell_probe(
    Breaker *breaker, BreakerResult result, int64_t begun_us, double random01, int64_t now_us)
{
    breaker->probe_begun_us = 0;
    if (result == BREAKER_NOTHING) {
        return BREAKER_STAYS; // the next probe says more
    }
    if (result != BREAKER_SUCCESS) {
        open_it(breaker, result == BREAKER_CONFIG, random01, now_us);
        return BREAKER_STAYS; // for others it was open all the time
    }
    note_success(breaker, begun_us);
    if (++breaker->probe_successes < BREAKER_CLOSES_AFTER) {
        return BREAKER_STAYS;
    }
    close_it(breaker, now_us);
    return BREAKER_CLOSES;
}

BreakerMove breaker_tell(
    Breaker *breaker, BreakerResult result, int64_t begun_us, double random01, int64_t now_us)
{
    switch (breaker->state) {
    case BREAKER_CLOSED:
    case BREAKER_SLOW:
        return result == BREAKER_NOTHING ? BREAKER_STAYS
                                         : tell_closed(breaker, result, begun_us, random01, now_us);
    case BREAKER_OPEN: // of a send that began before
        return BREAKER_STAYS;
    case BREAKER_HALF_OPEN:
        return breaker->probe_begun_us > 0 && begun_us >= breaker->probe_begun_us
                   ? tell_probe(breaker, result, begun_us, random01, now_us)
                   : BREAKER_STAYS;
    }
    return BREAKER_STAYS;
}

BreakerMove breaker_hear(
    Breaker *breaker, bool open, bool config, int64_t at_us, double random01, int64_t now_us)
{
    bool is_open = !breaker_is_closed(breaker);
    int64_t known_us = is_open ? breaker->opened_at_us : breaker->slow_since_us;
    if (open == is_open || at_us <= known_us) {
        return BREAKER_STAYS;
    }
    if (open) {
        open_it(breaker, config, random01, now_us);
        return BREAKER_OPENS;
    }
    close_it(breaker, now_us);
    return BREAKER_CLOSES;
}

void breaker_credential_changed(Breaker *breaker, int64_t now_us)
{
    if (breaker->state == BREAKER_OPEN) {
        breaker->probe_at_us = now_us;
    }
}

// ---- asking ----

bool breaker_is_closed(const Breaker *breaker)
{
    return breaker->state == BREAKER_CLOSED || breaker->state == BREAKER_SLOW;
}

static BreakerAnswer wait_until_us(int64_t at_us, int64_t *ret_at_us)
{
    if (ret_at_us != NULL) {
        *ret_at_us = at_us;
    }
    return BREAKER_WAIT;
}

// 1 in the first second, then 2, 4 ...; the second that allows the limit ends it.
static BreakerAnswer ask_slow(
    Breaker *breaker, int64_t limit_per_s, int64_t now_us, int64_t *ret_at_us)
{
    int64_t second = (now_us - breaker->slow_since_us) / SECOND_US;
    int64_t most = limit_per_s > 0 && limit_per_s < BREAKER_SLOW_MAX_PER_S ? limit_per_s
                                                                           : BREAKER_SLOW_MAX_PER_S;
    if (second >= 10 || INT64_C(1) << second >= most) {
        breaker->state = BREAKER_CLOSED;
        breaker->wait_ms = 0;
        return BREAKER_SEND;
    }
    if (second != breaker->slow_second) {
        breaker->slow_second = second;
        breaker->slow_sent = 0;
    }
    if (breaker->slow_sent >= (uint32_t)1 << second) {
        return wait_until_us(breaker->slow_since_us + (second + 1) * SECOND_US, ret_at_us);
    }
    breaker->slow_sent++;
    return BREAKER_SEND;
}

static BreakerAnswer ask_probe(Breaker *breaker, int64_t now_us, int64_t *ret_at_us)
{
    int64_t given_up_us = breaker->probe_begun_us + BREAKER_PROBE_MAX_MS * INT64_C(1000);
    if (breaker->probe_begun_us > 0 && now_us < given_up_us) {
        return wait_until_us(given_up_us, ret_at_us);
    }
    breaker->state = BREAKER_HALF_OPEN;
    breaker->probe_begun_us = now_us;
    return BREAKER_PROBE;
}

BreakerAnswer breaker_ask(Breaker *breaker, int64_t limit_per_s, int64_t now_us, int64_t *ret_at_us)
{
    switch (breaker->state) {
    case BREAKER_CLOSED:
        return BREAKER_SEND;
    case BREAKER_SLOW:
        return ask_slow(breaker, limit_per_s, now_us, ret_at_us);
    case BREAKER_OPEN:
        return now_us < breaker->probe_at_us ? wait_until_us(breaker->probe_at_us, ret_at_us)
                                             : ask_probe(breaker, now_us, ret_at_us);
    case BREAKER_HALF_OPEN:
        return ask_probe(breaker, now_us, ret_at_us);
    }
    return BREAKER_SEND;
}

void breaker_no_probe(Breaker *breaker, int64_t at_us)
{
    if (breaker->state == BREAKER_HALF_OPEN) {
        breaker->state = BREAKER_OPEN;
        breaker->probe_begun_us = 0;
        breaker->probe_at_us = at_us;
    }
}

const char *breaker_state_name(BreakerState state)
{
    switch (state) {
    case BREAKER_CLOSED:
        return "closed";
    case BREAKER_OPEN:
        return "open";
    case BREAKER_HALF_OPEN:
        return "half_open";
    case BREAKER_SLOW:
        return "slow_start";
    }
    return "";
}
