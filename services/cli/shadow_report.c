// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/log.h"
#include "services/cli/shadow.h"

const char *shadow_result_name(ShadowResult result)
{
    switch (result) {
    case SHADOW_SAME:
        return "same";
    case SHADOW_DIFFERENT:
        return "different";
    case SHADOW_FAILS:
        return "would_fail";
    case SHADOW_MENDED:
        return "would_fail_no_more";
    case SHADOW_FAILS_STILL:
        return "fails_with_both";
    case SHADOW_GATE_EXPIRED:
        return "expired";
    case SHADOW_GATE_SUPPRESSED:
        return "suppressed";
    case SHADOW_ERASED:
        return "recipient_erased";
    case SHADOW_UNKNOWN:
        return "unknown_version";
    case SHADOW_UNREADABLE:
        return "unreadable";
    case SHADOW_RESULT_COUNT:
        break;
    }
    return "";
}

// ---- counting ----

static void free_group(void *value)
{
    ShadowGroup *group = value;
    free(group->notification_id);
    free(group->diff);
    free(group);
}

void shadow_tally_init(ShadowTally *tally)
{
    *tally = (ShadowTally){.reasons = map_new(free), .groups = map_new(free_group)};
}

void shadow_tally_done(ShadowTally *tally)
{
    map_free(tally->reasons);
    map_free(tally->groups);
}

void shadow_count_reason(ShadowTally *tally, const char *code, const char *reason)
{
    char name[400];
    snprintf(name, sizeof name, "%s: %s", code, reason);
    uint64_t *count = map_get(tally->reasons, str_from(name));
    if (count == NULL && map_count(tally->reasons) >= SHADOW_REASONS_MAX) {
        return;
    }
    if (count == NULL) {
        count = xcalloc(1, sizeof *count);
        map_put(tally->reasons, str_from(name), count);
    }
    ++*count;
}

char *shadow_mask(Str text)
{
    Buf out;
    Str line;
    buf_init(&out, text.len * 2 + 1024);
    while (text.len > 0 && str_split(&text, '\n', &line)) {
        size_t size = line.len * 2 + 16; // a mask is at most three bytes longer than its address
        char *masked = xmalloc(size);
        mask_addresses(line, masked, size);
        for (char *c = masked; *c != '\0'; c++) {
            bool control = ((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f;
            *c = control ? '?' : *c;
        }
        buf_cstr(&out, masked);
        buf_char(&out, '\n');
        free(masked);
    }
    char *result = xstrdup(buf_c(&out));
    buf_done(&out);
    return result;
}

void shadow_count_group(
    ShadowTally *tally, uint64_t signature, const char *notification_id, Str diff, int64_t diffs)
{
    char name[24];
    snprintf(name, sizeof name, "%016" PRIx64, signature);
    ShadowGroup *group = map_get(tally->groups, str_from(name));
    if (group == NULL && map_count(tally->groups) >= SHADOW_GROUPS_MAX) {
        tally->ungrouped++;
        return;
    }
    if (group == NULL) {
        group = xcalloc(1, sizeof *group);
        group->order = map_count(tally->groups);
        group->notification_id = xstrdup(notification_id);
        group->diff = group->order < (uint64_t)diffs ? shadow_mask(diff) : NULL;
        map_put(tally->groups, str_from(name), group);
    }
    group->count++;
}

// ---- printing ----

static int compare_groups(const void *a, const void *b)
{
    const ShadowGroup *one = *(ShadowGroup *const *)a;
    const ShadowGroup *two = *(ShadowGroup *const *)b;
    return (one->order > two->order) - (one->order < two->order);
}

// In the order of their appearance; the caller frees the array.
static ShadowGroup **sorted_groups(const ShadowTally *tally, size_t *ret_count)
{
    ShadowGroup **groups = xcalloc(map_count(tally->groups) + 1, sizeof(ShadowGroup *));
    Str name;
    void *value;
    size_t count = 0;
    for (size_t i = 0; map_next(tally->groups, &i, &name, &value);) {
        groups[count++] = value;
    }
    qsort(groups, count, sizeof *groups, compare_groups);
    *ret_count = count;
    return groups;
}

static json_t *reasons_json(const ShadowTally *tally)
{
    json_t *reasons = json_object();
    Str name;
    void *value;
    for (size_t i = 0; map_next(tally->reasons, &i, &name, &value);) {
        json_object_setn_new(
            reasons, name.ptr, name.len, json_integer((json_int_t) * (uint64_t *)value));
    }
    return reasons;
}

static json_t *groups_json(const ShadowTally *tally)
{
    json_t *list = json_array();
    size_t count = 0;
    ShadowGroup **groups = sorted_groups(tally, &count);
    for (size_t i = 0; i < count; i++) {
        json_t *diff = groups[i]->diff != NULL ? json_string(groups[i]->diff) : NULL;
        json_array_append_new(
            list, json_pack(
                      "{s:I, s:s, s:o}", "count", (json_int_t)groups[i]->count, "first",
                      groups[i]->notification_id, "diff", diff != NULL ? diff : json_null()));
    }
    free(groups);
    return list;
}

static void print_json(const ShadowPlan *plan, const ShadowTally *tally)
{
    uint64_t read = 0;
    json_t *root = json_pack(
        "{s:s, s:I, s:b}", "template", plan->key, "scanned", (json_int_t)tally->scanned, "limited",
        tally->limited);
    for (int i = 0; i < SHADOW_RESULT_COUNT; i++) {
        read += tally->results[i];
        json_object_set_new(
            root, shadow_result_name((ShadowResult)i), json_integer((json_int_t)tally->results[i]));
    }
    json_object_set_new(root, "requests", json_integer((json_int_t)read));
    json_object_set_new(root, "reasons", reasons_json(tally));
    json_object_set_new(root, "groups", groups_json(tally));
    json_object_set_new(root, "ungrouped", json_integer((json_int_t)tally->ungrouped));
    char *line = json_dumps(root, JSON_COMPACT);
    printf("%s\n", line != NULL ? line : "{}");
    free(line);
    json_decref(root);
}

static void print_groups(const ShadowTally *tally)
{
    size_t count = 0;
    ShadowGroup **groups = sorted_groups(tally, &count);
    for (size_t i = 0; i < count; i++) {
        if (groups[i]->diff != NULL) {
            printf(
                "\n%" PRIu64 " differ in the same lines; the first, %s:\n%s", groups[i]->count,
                groups[i]->notification_id, groups[i]->diff);
        }
    }
    uint64_t hidden = tally->ungrouped;
    for (size_t i = 0; i < count; i++) {
        hidden += groups[i]->diff == NULL ? groups[i]->count : 0;
    }
    if (hidden > 0) {
        printf("\n%" PRIu64 " more differ in other lines (--diffs N shows more)\n", hidden);
    }
    free(groups);
}

static void print_text(const ShadowPlan *plan, const ShadowTally *tally)
{
    uint64_t read = 0;
    for (int i = 0; i < SHADOW_RESULT_COUNT; i++) {
        read += tally->results[i];
    }
    printf(
        "%s: %" PRIu64 " requests of %" PRIu64 " scanned%s\n", plan->key, read, tally->scanned,
        tally->limited ? " (stopped at --limit)" : "");
    for (int i = 0; i < SHADOW_RESULT_COUNT; i++) {
        if (i <= SHADOW_FAILS || tally->results[i] > 0) {
            printf("  %10" PRIu64 "  %s\n", tally->results[i], shadow_result_name((ShadowResult)i));
        }
    }
    Str name;
    void *value;
    for (size_t i = 0; map_next(tally->reasons, &i, &name, &value);) {
        printf("  %10" PRIu64 "    " STR_FMT "\n", *(const uint64_t *)value, STR_ARG(name));
    }
    print_groups(tally);
}

void shadow_print(const Cli *cli, const ShadowPlan *plan, const ShadowTally *tally)
{
    if (cli->json) {
        print_json(plan, tally);
    } else {
        print_text(plan, tally);
    }
}
