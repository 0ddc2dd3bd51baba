// SPDX-License-Identifier: Apache-2.0
#include "services/cli/replay/shadow_report.h"
#include "services/cli/cli.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

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
    print_json_line(root);
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

void shadow_print(const ShadowPlan *plan, const ShadowTally *tally, bool json)
{
    if (json) {
        print_json(plan, tally);
    } else {
        print_text(plan, tally);
    }
}
