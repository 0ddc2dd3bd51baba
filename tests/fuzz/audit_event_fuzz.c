// SPDX-License-Identifier: Apache-2.0
// links: svc_cli
// Any bytes as a message of each stream that the audit reads: they make at most one entry, of an id
// that can be published again, and a dead letter makes none.
#include <stdlib.h>
#include <string.h>

#include "common/audit/audit_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void see_once(const char *stream, Str payload)
{
    Arena *arena = arena_new(0);
    AuditTable *table = audit_table_new();
    AuditMarks marks = {.floor = 1, .position = 1};
    BusMessage message = {.stream = stream, .payload = payload, .sequence = 2, .stored_at_us = 1};
    audit_event(table, &message, &marks, arena);
    size_t count = audit_table_count(table);
    if (count > 1 || (count == 1 && strcmp(stream, "DEAD") == 0)) {
        abort();
    }
    if (count == 1) {
        char id[AUDIT_ID_SIZE];
        AuditEntry *entry = audit_table_at(table, 0);
        audit_entry_id(entry, id);
        if (audit_find(table, str_from(id), str_from(audit_tenant(table, entry->tenant))) !=
            entry) {
            abort();
        }
    }
    audit_table_free(table);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const streams[] = {"REQUEST_NORMAL", "RENDERED_NORMAL", "DEFERRED",
                                          "FEED",           "STATUS",          "DEAD"};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        see_once(streams[i], str_of(data, size));
    }
    return 0;
}
