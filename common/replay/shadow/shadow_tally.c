// SPDX-License-Identifier: Apache-2.0
#include "common/replay/shadow/shadow_tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/log.h"

const char *shadow_result_name(ShadowResult result)
{
    switch (result) {
    case SHADOW_SAME:
        return "same";
    case SHADOW_DIFFERENT:
        return "different";
    case SHADOW_FAILS:
        return "would_fail";
    case SHADOW_FIXED:
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

const char *shadow_part_name(ShadowPart part)
{
    switch (part) {
    case SHADOW_SUBJECT:
        return "subject";
    case SHADOW_TITLE:
        return "title";
    case SHADOW_HTML:
        return "html";
    case SHADOW_TEXT:
        return "text";
    case SHADOW_DATA:
        return "data";
    case SHADOW_REFERENCE:
        return "reference";
    case SHADOW_PARAMETERS:
        return "parameters";
    case SHADOW_PART_COUNT:
        break;
    }
    return "";
}

static void free_group(void *value)
{
    ShadowGroup *group = value;
    free(group->notification_id);
    free(group->version);
    free(group->diff);
    for (int i = 0; i < SHADOW_PART_COUNT; i++) {
        free(group->parts[i]);
    }
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

// Every e-mail address becomes its mask, and what could move a terminal's cursor a question mark.
static char *shadow_mask(Str text)
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

ShadowGroup *shadow_count_group(
    ShadowTally *tally, uint64_t signature, const char *notification_id, int64_t diffs)
{
    char name[24];
    snprintf(name, sizeof name, "%016" PRIx64, signature);
    ShadowGroup *group = map_get(tally->groups, str_from(name));
    if (group != NULL) {
        group->count++;
        return NULL;
    }
    if (map_count(tally->groups) >= SHADOW_GROUPS_MAX) {
        tally->ungrouped++;
        return NULL;
    }
    group = xcalloc(1, sizeof *group);
    group->count = 1;
    group->order = map_count(tally->groups);
    group->notification_id = xstrdup(notification_id);
    map_put(tally->groups, str_from(name), group);
    return group->order < (uint64_t)diffs ? group : NULL;
}

void shadow_group_diff(ShadowGroup *group, Str diff)
{
    group->diff = shadow_mask(diff);
}
