// SPDX-License-Identifier: Apache-2.0
// For the tests of vendors' callbacks.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/vendor/callback_list.h"

#define NTF "ntf_01ARZ3NDEKTSV4RRFFQ69G5FAV"

static inline CallbackVerdict ask(
    const VendorCallback *vendor, const CallbackRequest *request, const CallbackKey *keys,
    size_t count, size_t *ret_key)
{
    CallbackVerdict verdict = CALLBACK_GOOD;
    bool good = vendor->verify(request, keys, count, &verdict, ret_key);
    assert_true(good == (verdict == CALLBACK_GOOD));
    return verdict;
}

static inline CallbackBatch read_all(const VendorCallback *vendor, const char *body, Arena *arena)
{
    CallbackBatch batch = {0};
    Error err = {0};
    if (!vendor->events(str_from(body), arena, &batch, &err)) {
        fail_msg("%s: %s", body, err.text);
    }
    return batch;
}

static inline CallbackEvent read_one(const VendorCallback *vendor, const char *body, Arena *arena)
{
    CallbackBatch batch = read_all(vendor, body, arena);
    if (batch.count != 1) {
        fail_msg("%s: %zu events", body, batch.count);
    }
    return batch.events[0];
}

// What one body becomes, in one line: "bounced hard_bounce suppress=hard_bounce".
typedef struct Meaning {
    const char *body;
    Status status;
    Outcome outcome;
    const char *reason_code;
    SuppressionReason suppress;
} Meaning;

static inline void each_means(const VendorCallback *vendor, const Meaning *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Arena *arena = arena_new(0);
        CallbackEvent event = read_one(vendor, cases[i].body, arena);
        if (event.status != cases[i].status || event.outcome != cases[i].outcome ||
            event.suppress != cases[i].suppress ||
            strcmp(event.reason_code, cases[i].reason_code) != 0) {
            fail_msg(
                "%s: status %d, outcome %d, '%s', suppression %d", cases[i].body, event.status,
                event.outcome, event.reason_code, event.suppress);
        }
        arena_free(arena);
    }
}

// body: with %s where the code of a failure stands.
static inline void each_code_means_what_it_means_in_an_answer(
    const VendorCallback *vendor, const VendorApi *api, const char *body)
{
    for (const VendorReason *row = api->reasons; row->code != NULL; row++) {
        Arena *arena = arena_new(0);
        char *text = arena_alloc(arena, strlen(body) + 16);
        const char *at = strstr(body, "%s");
        assert_non_null(at);
        (void)snprintf(
            text, strlen(body) + 16, "%.*s%s%s", (int)(at - body), body, row->code, at + 2);
        CallbackEvent event = read_one(vendor, text, arena);
        assert_int_equal(event.status, STATUS_FAILED);
        assert_string_equal(event.reason_code, row->reason_code);
        assert_int_equal(event.suppress, row->suppress);
        arena_free(arena);
    }
}

static inline void each_is_ignored(
    const VendorCallback *vendor, const char *const *bodies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Arena *arena = arena_new(0);
        CallbackBatch batch = read_all(vendor, bodies[i], arena);
        if (batch.count != 0 || batch.ignored != 1) {
            fail_msg("%s: %zu events, %zu ignored", bodies[i], batch.count, batch.ignored);
        }
        arena_free(arena);
    }
}

static inline void each_is_refused(
    const VendorCallback *vendor, const char *const *bodies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Arena *arena = arena_new(0);
        CallbackBatch batch = {0};
        Error err = {0};
        if (vendor->events(str_from(bodies[i]), arena, &batch, &err) ||
            err.kind != ERROR_PERMANENT) {
            fail_msg("%s was taken", bodies[i]);
        }
        arena_free(arena);
    }
}
