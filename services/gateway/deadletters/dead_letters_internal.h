// SPDX-License-Identifier: Apache-2.0
// What the routes of dead letters share.
#pragma once

#include "common/api/api_json.h"
#include "services/gateway/deadletters/dead_letters_api.h"
#include "services/gateway/deadletters/letter_view.h"

enum { DEAD_LETTERS_RESEND_MAX = 10000 }; // of one call

// ---- letter_call.c ----

ResendRules dead_letters_rules(const ApiCall *call); // no flags set
// false: answered. Names of the query, or of the object `filter` of a body.
bool dead_letters_read_query(ApiCall *call, LetterFilter *ret);
bool dead_letters_read_filter(ApiBody *body, LetterFilter *ret);
void dead_letters_answer_busy(ApiCall *call);
// One letter of the caller's tenant by the path's sequence, fetched; `next` gets it. Answers what
// is not there.
typedef void (*LetterNext)(void *ctx, const Letter *letter);
void dead_letters_fetch(ApiCall *call, uint64_t sequence, LetterNext next, void *ctx);
bool dead_letters_sequence(ApiCall *call, uint64_t *ret); // false: answered

// ---- letter_resend.c ----

// What is to be sent again, and how; lives in the request's arena.
typedef struct Resending {
    ApiCall *call;
    const uint64_t *sequences; // all of the caller's tenant
    const int64_t *stored_us;
    size_t count;
    const char *notification_id; // of a single one; ""
    bool may_double, ignore_expiry;
    void (*done)(void *ctx, size_t requested); // all events are stored
    void *ctx;
    size_t at, waiting, requested;
    bool gathering;
    Error failure;
} Resending;

// Notes and publishes them, DEAD_NOTE_MAX at a time; answers the call when it fails.
void dead_letters_resend(Resending *resending);

// Each adds its routes.
void dead_letters_list_add(Api *api, DeadLettersApi *letters);
void dead_letters_one_add(Api *api, DeadLettersApi *letters);
void dead_letters_bulk_add(Api *api, DeadLettersApi *letters);
