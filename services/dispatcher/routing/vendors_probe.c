// SPDX-License-Identifier: Apache-2.0
// Who tries a vendor that was left alone: one mail of one dispatcher at a time. The right to it is
// a key of the shared limits with one token a wait of the breaker.
//
// Killed with the right: no probe is made until the wait is over, then another dispatcher does.
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "services/dispatcher/routing/vendors_internal.h"

enum {
    OFFER_PAUSE_MS = 1000, // between two mails that are sent its way to be the probe
    NO_ANSWER_MS = 5000,   // the right was asked for, and Postgres did not answer
    RIGHT_NAME_SIZE = 200,
};

bool vendors_wants_probe(const VendorPlace *place, int64_t now_us)
{
    const Breaker *breaker = &place->breaker;
    return (breaker->state == BREAKER_OPEN && now_us >= breaker->probe_at_us) ||
           (breaker->state == BREAKER_HALF_OPEN && breaker->probe_begun_us == 0);
}

bool vendor_is_closed(const VendorPlace *place)
{
    return breaker_is_closed(&place->breaker);
}

bool vendor_is_up(const VendorPlace *place, int64_t now_us)
{
    return breaker_is_closed(&place->breaker) || vendors_wants_probe(place, now_us);
}

// Never an urgent mail, for another vendor may have it at once.
bool vendors_takes_probe(VendorPlace *place, const Job *job, int64_t now_us)
{
    bool urgent = (Priority)job->rendered->priority <= PRIORITY_HIGH;
    if (urgent || !vendors_wants_probe(place, now_us) ||
        now_us - place->offered_us < OFFER_PAUSE_MS * INT64_C(1000)) {
        return false;
    }
    place->offered_us = now_us;
    return true;
}

BreakerAnswer vendor_ask(VendorPlace *place, int64_t now_us, int64_t *ret_at_us)
{
    return breaker_ask(&place->breaker, 0, now_us, ret_at_us);
}

void vendor_no_probe(VendorPlace *place)
{
    breaker_no_probe(&place->breaker, clock_now_us());
}

// ---- the right ----

typedef struct Claim {
    VendorPlace *place;
    int64_t every_us;
    void (*on_answer)(void *ctx, bool granted);
    void *ctx;
} Claim;

static int64_t wait_us(const VendorPlace *place)
{
    const Breaker *breaker = &place->breaker;
    if (place->mended) {
        return BREAKER_WAIT_MIN_MS * INT64_C(1000);
    }
    if (breaker->config) {
        return BREAKER_CONFIG_WAIT_MS * INT64_C(1000);
    }
    int64_t wait_ms =
        breaker->wait_ms > BREAKER_WAIT_MIN_MS ? breaker->wait_ms : BREAKER_WAIT_MIN_MS;
    return wait_ms * 1000;
}

static void on_claimed(void *ctx, bool granted, int64_t again_in_us)
{
    Claim *claim = ctx;
    VendorPlace *place = claim->place;
    int64_t now_us = clock_now_us();
    bool answered = granted || again_in_us > 0;
    // Who has the right tries the credential as it is now; without an answer no one may have it.
    place->mended = place->mended && !answered;
    if (granted) {
        place->right_until_us = now_us + claim->every_us;
    } else {
        int64_t unknown_us = NO_ANSWER_MS * INT64_C(1000);
        breaker_no_probe(&place->breaker, now_us + (again_in_us > 0 ? again_in_us : unknown_us));
    }
    claim->on_answer(claim->ctx, granted);
    free(claim);
}

void vendor_claim_probe(VendorPlace *place, void (*on_answer)(void *ctx, bool granted), void *ctx)
{
    Budgets *budgets = place->vendors->budgets;
    int64_t now_us = clock_now_us();
    if (budgets == NULL || now_us < place->right_until_us) {
        on_answer(ctx, true);
        return;
    }
    char name[RIGHT_NAME_SIZE];
    (void)snprintf(name, sizeof name, "probe|%s", place->limit);
    Claim *claim = xcalloc(1, sizeof *claim);
    *claim = (Claim){place, wait_us(place), on_answer, ctx};
    // A refused credential is probed each 15 min; one that was mended meanwhile at once.
    int64_t most_us =
        (place->mended ? BREAKER_WAIT_MAX_MS : 2 * BREAKER_CONFIG_WAIT_MS) * INT64_C(1000);
    budgets_claim(budgets, str_from(name), claim->every_us, most_us, on_claimed, claim);
}

void vendors_end_right(VendorPlace *place)
{
    if (place->breaker.state != BREAKER_HALF_OPEN) {
        place->right_until_us = 0;
    }
}
