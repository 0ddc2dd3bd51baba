// SPDX-License-Identifier: Apache-2.0
// GET /v1/dead-letters and /v1/dead-letters/reasons. A page with a filter may have fewer letters
// than fit and still not be the last: a read ends by bytes and by time (letter_scan.h).
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/api/page.h"
#include "common/base/clock.h"
#include "common/base/map.h"
#include "services/gateway/deadletters/dead_letters_internal.h"

enum { GROUPS_MAX = 500, GROUP_KEY_SIZE = 512 };

// ---- the list ----

typedef struct ListCall {
    ApiCall *call;
    Page page;
    LetterFilter filter;
    ResendRules rules;
    json_t *data;
    uint64_t shown; // the last one
    int64_t shown_us;
    bool more; // another one would have fitted the filter
} ListCall;

static bool on_list_letter(void *ctx, const Letter *letter, Arena *arena)
{
    ListCall *list = ctx;
    if (!letter_matches(&list->filter, letter)) {
        return true;
    }
    if (json_array_size(list->data) == list->page.limit) {
        list->more = true;
        return false;
    }
    (void)json_array_append_new(list->data, letter_view(letter, &list->rules, arena));
    list->shown = letter->sequence;
    list->shown_us = letter->stored_at_us;
    return true;
}

static void on_listed(void *ctx, const LetterScanEnd *end, const Error *err)
{
    ListCall *list = ctx;
    if (err != NULL) {
        json_decref(list->data);
        api_answer_failure(list->call, err);
        return;
    }
    uint64_t last = list->more ? list->shown : end->last;
    int64_t last_us = list->more ? list->shown_us : end->last_us;
    const char *next = arena_printf(list->call->http->arena, "%" PRIu64 "/%" PRId64, last, last_us);
    page_answer(list->call, list->data, end->whole ? STR_EMPTY : str_from(next));
}

// "<sequence>/<stored at, us>", as a cursor holds it; nothing of it comes from the caller.
static bool read_position(ListCall *list, uint64_t *ret_after, int64_t *ret_since_us)
{
    Str rest = list->page.after;
    Str sequence = STR_EMPTY;
    int64_t after = 0;
    *ret_after = 0;
    *ret_since_us = list->filter.since_us;
    if (rest.len == 0) {
        return true;
    }
    bool ok = str_split(&rest, '/', &sequence) && str_to_i64(sequence, &after) &&
              str_to_i64(rest, ret_since_us);
    *ret_after = (uint64_t)after;
    return ok;
}

static void get_letters(ApiCall *call)
{
    DeadLettersApi *api = call->ctx;
    ListCall *list = arena_zalloc(call->http->arena, sizeof *list);
    list->call = call;
    list->rules = dead_letters_rules(call);
    LetterScanOptions options = {
        .bus = api->bus,
        .tenant = str_from(call->tenant),
        .each = on_list_letter,
        .done = on_listed,
        .ctx = list,
    };
    if (!dead_letters_read_query(call, &list->filter) ||
        !page_read(call, PAGE_LIMIT, PAGE_LIMIT_MAX, &list->page)) {
        return;
    }
    if (!read_position(list, &options.after, &options.since_us)) {
        api_answer_parameter(call, "cursor", "not a cursor of this list");
        return;
    }
    options.stage = list->filter.stage;
    list->data = json_array();
    if (!letter_scan(&api->scans, &options)) {
        json_decref(list->data);
        dead_letters_answer_busy(call);
    }
}

// ---- the reasons ----

typedef struct Group {
    Str stage, reason, vendor, code, enhanced_code;
    const char *detail; // of the first
    uint64_t count, by_class[LETTER_STAYS + 1];
    uint64_t first;
    int64_t oldest_us, newest_us;
} Group;

typedef struct GroupCall {
    ApiCall *call;
    LetterFilter filter;
    ResendRules rules;
    Map *groups;
    Group **all; // in the order of their first letters
    size_t count;
    uint64_t other; // letters of groups beyond GROUPS_MAX
} GroupCall;

static Group *new_group(GroupCall *call, const Letter *letter, const char *key)
{
    Arena *arena = call->call->http->arena;
    const Stentor__V1__Attempt *attempt = letter_attempt(letter);
    const char *detail = letter->body != NULL ? letter->body->reason : letter->unreadable.text;
    Group *group = arena_zalloc(arena, sizeof *group);
    *group = (Group){
        .stage = arena_str(arena, letter->stage),
        .reason = arena_str(arena, letter_reason(letter)),
        .vendor = arena_str(arena, str_from(attempt != NULL ? attempt->vendor : "")),
        .code = arena_str(arena, str_from(attempt != NULL ? attempt->code : "")),
        .enhanced_code = arena_str(arena, str_from(attempt != NULL ? attempt->enhanced_code : "")),
        .detail = arena_cstr(arena, str_from(detail)),
        .first = letter->sequence,
        .oldest_us = letter->stored_at_us,
    };
    map_put(call->groups, str_from(key), group);
    call->all[call->count++] = group;
    return group;
}

static Group *group_of(GroupCall *call, const Letter *letter)
{
    char key[GROUP_KEY_SIZE];
    const Stentor__V1__Attempt *attempt = letter_attempt(letter);
    Str stage = str_slice(letter->stage, 0, LETTER_WORD_MAX);
    Str reason = str_slice(letter_reason(letter), 0, LETTER_WORD_MAX);
    (void)snprintf(
        key, sizeof key, STR_FMT "\n" STR_FMT "\n%.128s\n%.64s\n%.64s", STR_ARG(stage),
        STR_ARG(reason), attempt != NULL ? attempt->vendor : "",
        attempt != NULL ? attempt->code : "", attempt != NULL ? attempt->enhanced_code : "");
    Group *group = map_get(call->groups, str_from(key));
    return group != NULL || call->count == GROUPS_MAX ? group : new_group(call, letter, key);
}

static bool on_group_letter(void *ctx, const Letter *letter, Arena *arena)
{
    GroupCall *call = ctx;
    Error why = {0};
    if (!letter_matches(&call->filter, letter)) {
        return true;
    }
    Group *group = group_of(call, letter);
    if (group == NULL) {
        call->other++;
        return true;
    }
    group->count++;
    group->newest_us = letter->stored_at_us;
    group->by_class[letter_class(letter, &call->rules, arena, &why)]++;
    return true;
}

static json_t *group_json(const Group *group)
{
    char oldest[CLOCK_RFC3339_SIZE], newest[CLOCK_RFC3339_SIZE];
    clock_format(group->oldest_us, oldest);
    clock_format(group->newest_us, newest);
    json_t *object = json_object();
    (void)json_object_set_new(object, "stage", letter_text(group->stage));
    (void)json_object_set_new(object, "reason", letter_text(group->reason));
    (void)json_object_set_new(object, "vendor", letter_text(group->vendor));
    (void)json_object_set_new(object, "code", letter_text(group->code));
    (void)json_object_set_new(object, "enhanced_code", letter_text(group->enhanced_code));
    (void)json_object_set_new(object, "detail", letter_text(str_from(group->detail)));
    (void)json_object_set_new(object, "letters", json_integer((json_int_t)group->count));
    for (LetterClass class = LETTER_SAFE; class <= LETTER_STAYS; class ++) {
        (void)json_object_set_new(
            object, letter_class_name(class), json_integer((json_int_t)group->by_class[class]));
    }
    (void)json_object_set_new(object, "first", json_integer((json_int_t)group->first));
    (void)json_object_set_new(object, "oldest_at", json_string(oldest));
    (void)json_object_set_new(object, "newest_at", json_string(newest));
    return object;
}

static int by_count(const void *a, const void *b)
{
    const Group *x = *(Group *const *)a;
    const Group *y = *(Group *const *)b;
    return x->count == y->count ? (x->first > y->first) - (x->first < y->first)
                                : (x->count < y->count) - (x->count > y->count);
}

static void on_grouped(void *ctx, const LetterScanEnd *end, const Error *err)
{
    GroupCall *call = ctx;
    map_free(call->groups);
    if (err != NULL) {
        api_answer_failure(call->call, err);
        return;
    }
    json_t *data = json_array();
    qsort(call->all, call->count, sizeof(Group *), by_count);
    for (size_t i = 0; i < call->count; i++) {
        (void)json_array_append_new(data, group_json(call->all[i]));
    }
    api_answer_json(
        call->call, 200,
        json_pack(
            "{s:o, s:I, s:b}", "data", data, "other", (json_int_t)call->other, "complete",
            end->whole));
}

static void get_reasons(ApiCall *call)
{
    DeadLettersApi *api = call->ctx;
    GroupCall *groups = arena_zalloc(call->http->arena, sizeof *groups);
    groups->call = call;
    groups->rules = dead_letters_rules(call);
    if (!dead_letters_read_query(call, &groups->filter)) {
        return;
    }
    const LetterScanOptions options = {
        .bus = api->bus,
        .tenant = str_from(call->tenant),
        .stage = groups->filter.stage,
        .since_us = groups->filter.since_us,
        .each = on_group_letter,
        .done = on_grouped,
        .ctx = groups,
    };
    groups->groups = map_new(NULL);
    groups->all = arena_array(call->http->arena, GROUPS_MAX, sizeof(Group *));
    if (!letter_scan(&api->scans, &options)) {
        map_free(groups->groups);
        dead_letters_answer_busy(call);
    }
}

// clang-format off
static const ApiRoute ROUTES[] = {
    {"GET", "/v1/dead-letters", SCOPE_DEAD_READ, get_letters,
     "limit cursor stage reason vendor code enhanced_code since", false},
    {"GET", "/v1/dead-letters/reasons", SCOPE_DEAD_READ, get_reasons,
     "stage reason vendor code enhanced_code since", false},
};
// clang-format on

void dead_letters_list_add(Api *api, DeadLettersApi *letters)
{
    api_add(api, ROUTES, sizeof ROUTES / sizeof ROUTES[0], letters);
}
