// SPDX-License-Identifier: Apache-2.0
// Breaker: whether one vendor's credential is worth a try now. Closed: everything goes. It opens
// after 5 failures in a row of sends begun after the last success began, or when half of at least
// 20 sends of 10 s failed; then nothing goes for 5 s, doubling to 60 s. After that one probe at a
// time; the third success closes it, with a slow start of 1, 2, 4 .. sends a second. A refused
// credential (CONFIG) opens it at once, until the credential changes or each 15 min. Pure: time and
// chance are arguments; one breaker for each (owner, channel, vendor, credential) in each replica,
// and what one finds the others hear (breaker_hear).
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/vendor/send_result.h"

enum {
    BREAKER_IN_ROW = 5,
    BREAKER_WINDOW_S = 10,
    BREAKER_WINDOW_MIN = 20,    // fewer sends of the window say nothing
    BREAKER_WAIT_MIN_MS = 5000, // each time with +-20 % by chance
    BREAKER_WAIT_MAX_MS = 60000,
    BREAKER_CONFIG_WAIT_MS = 900000,
    BREAKER_CLOSES_AFTER = 3,      // successes of probes
    BREAKER_SLOW_MAX_PER_S = 1024, // where the slow start ends when there is no limit
    BREAKER_PROBE_MAX_MS = 300000, // a probe of which nothing was heard for so long is given up
};

typedef enum BreakerState {
    BREAKER_CLOSED,
    BREAKER_OPEN,
    BREAKER_HALF_OPEN,
    BREAKER_SLOW, // closed, with a slow start
} BreakerState;

typedef enum BreakerResult {
    BREAKER_SUCCESS, // the vendor works, whatever it says of the mail
    BREAKER_FAILURE,
    BREAKER_CONFIG,  // the credential, the sender or the account is refused
    BREAKER_NOTHING, // it says nothing about the vendor
} BreakerResult;

typedef enum BreakerAnswer {
    BREAKER_SEND,
    BREAKER_PROBE, // this one send, as a probe: all replicas together may make one (the right is a
                   // budget key with one token a wait)
    BREAKER_WAIT,
} BreakerAnswer;

// What a call has changed: to be logged, and stored in CONFIG for the other replicas.
typedef enum BreakerMove { BREAKER_STAYS, BREAKER_OPENS, BREAKER_CLOSES } BreakerMove;

typedef struct BreakerSecond {
    int64_t second;
    uint32_t sends, failures;
} BreakerSecond;

typedef struct Breaker {
    BreakerState state;
    bool config; // opened by a refused credential
    int64_t opened_at_us;
    int64_t wait_ms;        // of the last opening, without chance; 0: none yet
    int64_t probe_at_us;    // OPEN: from when on a probe may go
    int64_t probe_begun_us; // HALF_OPEN: of the one that is under way; 0: none is
    uint32_t probe_successes;
    int64_t success_begun_us;          // the latest begin of a send that succeeded
    int64_t failed_us[BREAKER_IN_ROW]; // begins of the last failures after it
    uint32_t failed_count;
    BreakerSecond window[BREAKER_WINDOW_S];
    int64_t slow_since_us;
    int64_t slow_second; // of slow_since_us, in which slow_sent were sent
    uint32_t slow_sent;
} Breaker;

// All zero is a closed breaker.

// What a result says of the vendor: ACCEPTED, TERMINAL, BAD_ADDRESS and ELSEWHERE that it works;
// UNSENT, UNKNOWN and RETRY with a 5xx that it fails; THROTTLED, another RETRY and a release
// nothing.
BreakerResult breaker_result(const SendResult *result);

// May a send begin? Counts the slow start's, and moves OPEN to HALF_OPEN when the wait is over.
// BREAKER_WAIT: *ret_at_us (may be NULL) is when to ask again. limit_per_s: of the credential, 0:
// none.
BreakerAnswer breaker_ask(
    Breaker *breaker, int64_t limit_per_s, int64_t now_us, int64_t *ret_at_us);
// The same without taking anything: is it closed, for choosing a route?
bool breaker_is_closed(const Breaker *breaker);
// A BREAKER_PROBE that was not made after all (another replica has the right): ask again at at_us.
void breaker_no_probe(Breaker *breaker, int64_t at_us);
// A send's end. begun_us: when breaker_ask() let it go. random01 in [0, 1).
BreakerMove breaker_tell(
    Breaker *breaker, BreakerResult result, int64_t begun_us, double random01, int64_t now_us);
// Another replica, or an operator's entry, says that it opened or closed at `at_us`. Older than
// what is known here: nothing happens.
BreakerMove breaker_hear(
    Breaker *breaker, bool open, bool config, int64_t at_us, double random01, int64_t now_us);
// The credential is another one now, or its secret was read again: a probe may go at once.
void breaker_credential_changed(Breaker *breaker, int64_t now_us);
const char *breaker_state_name(BreakerState state); // "closed", "open", "half_open", "slow_start"
