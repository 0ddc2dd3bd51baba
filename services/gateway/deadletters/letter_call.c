// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/bus/jetstream/get_message.h"
#include "services/gateway/deadletters/dead_letters_internal.h"

ResendRules dead_letters_rules(const ApiCall *call)
{
    const DeadLettersApi *api = call->ctx;
    return (ResendRules){
        .by_tenant = true,
        .now_us = call->http->received_at_us,
        .suppressions = api->suppressions,
    };
}

void dead_letters_answer_busy(ApiCall *call)
{
    api_answer_unavailable(
        call, "too many reads of dead letters are under way, or NATS cannot be reached");
}

// ---- the filter ----

// A stage stands in a subject.
static bool is_stage(Str stage)
{
    return stage.len == 0 || id_is_key(stage);
}

bool dead_letters_read_query(ApiCall *call, LetterFilter *ret)
{
    const HttpRequest *http = call->http;
    Str since = http_query(http, "since");
    *ret = (LetterFilter){
        .stage = http_query(http, "stage"),
        .reason = http_query(http, "reason"),
        .vendor = http_query(http, "vendor"),
        .code = http_query(http, "code"),
        .enhanced_code = http_query(http, "enhanced_code"),
    };
    if (!is_stage(ret->stage)) {
        return api_refuse_field(call, "stage", "not a stage's name, such as 'dispatcher'");
    }
    if (since.len > 0 && !clock_parse(since, &ret->since_us)) {
        return api_refuse_field(call, "since", "not a time such as '2026-12-24T15:00:00Z'");
    }
    return true;
}

bool dead_letters_read_filter(ApiBody *body, LetterFilter *ret)
{
    json_t *object = NULL;
    *ret = (LetterFilter){.since_us = 0};
    if (!api_read_object(body, "filter", &object) || object == NULL) {
        return api_body_good(body);
    }
    ApiBody inside = api_body_inside(body, object, "filter.");
    bool ok = api_read_text(&inside, "stage", LETTER_WORD_MAX, &ret->stage) &&
              api_read_text(&inside, "reason", LETTER_WORD_MAX, &ret->reason) &&
              api_read_text(&inside, "vendor", LETTER_WORD_MAX, &ret->vendor) &&
              api_read_text(&inside, "code", LETTER_WORD_MAX, &ret->code) &&
              api_read_text(&inside, "enhanced_code", LETTER_WORD_MAX, &ret->enhanced_code) &&
              api_read_time(&inside, "since", &ret->since_us);
    if (ok && !is_stage(ret->stage)) {
        (void)api_body_fail(&inside, "stage", "not a stage's name, such as 'dispatcher'");
    }
    (void)api_body_end(&inside);
    return api_body_inside_end(body, &inside);
}

// ---- one letter ----

typedef struct Fetch {
    ApiCall *call;
    uint64_t sequence;
    LetterNext next;
    void *ctx;
} Fetch;

static void answer_missing(const Fetch *fetch)
{
    api_answer_missing(
        fetch->call, arena_printf(
                         fetch->call->http->arena, "dead letter %" PRIu64 " of tenant '%s'",
                         fetch->sequence, fetch->call->tenant));
}

static void on_letter_fetched(void *ctx, Str reply, const Error *err)
{
    const Fetch *fetch = ctx;
    Arena *arena = fetch->call->http->arena;
    Error refusal = {0};
    BusMessage message;
    bool found = false;
    if (err == NULL && !get_message_reply(reply, "DEAD", arena, &message, &found, &refusal)) {
        err = &refusal;
    }
    if (err != NULL) {
        api_answer_failure(fetch->call, err);
        return;
    }
    Letter *letter = arena_zalloc(arena, sizeof *letter);
    if (found) {
        letter_read(&message, arena, letter);
    }
    if (found && str_eq(letter->tenant, str_from(fetch->call->tenant))) {
        fetch->next(fetch->ctx, letter);
    } else {
        answer_missing(fetch);
    }
}

void dead_letters_fetch(ApiCall *call, uint64_t sequence, LetterNext next, void *ctx)
{
    const DeadLettersApi *api = call->ctx;
    Fetch *fetch = arena_zalloc(call->http->arena, sizeof *fetch);
    *fetch = (Fetch){call, sequence, next, ctx};
    MessageQuery query = {.stream = "DEAD", .sequence = sequence};
    get_message(api->bus, &query, on_letter_fetched, fetch);
}

bool dead_letters_sequence(ApiCall *call, uint64_t *ret)
{
    int64_t sequence = 0;
    if (str_to_i64(call->params[0], &sequence) && sequence > 0) {
        *ret = (uint64_t)sequence;
        return true;
    }
    api_answer_missing(
        call, arena_printf(
                  call->http->arena,
                  "dead letter '" STR_FMT "'; its name is a sequence, as the "
                  "list shows it",
                  STR_ARG(str_slice(call->params[0], 0, LETTER_WORD_MAX))));
    return false;
}
