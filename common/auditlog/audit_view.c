// SPDX-License-Identifier: Apache-2.0
#include "common/auditlog/audit_view.h"

#include "common/base/clock.h"

static json_t *details_json(const Stentor__V1__AuditEntry *entry)
{
    json_t *details = json_object();
    for (size_t i = 0; i < entry->n_details; i++) {
        json_object_set_new(
            details, entry->details[i]->name, json_string(entry->details[i]->value));
    }
    return details;
}

const Stentor__V1__AuditEntry *audit_view_entry(
    const Stentor__V1__AuditEntry *message, size_t index)
{
    const Stentor__V1__AuditEntry *entry = index == 0                 ? message
                                           : index <= message->n_also ? message->also[index - 1]
                                                                      : NULL;
    return entry != NULL && entry->meta != NULL ? entry : NULL;
}

json_t *audit_view_json(uint64_t sequence, const char *kind, const Stentor__V1__AuditEntry *entry)
{
    char at[CLOCK_RFC3339_SIZE];
    clock_format(entry->meta->occurred_at_us, at);
    return json_pack(
        "{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "sequence",
        (json_int_t)sequence, "at", at, "tenant", entry->meta->tenant, "kind", kind, "action",
        entry->action, "actor", entry->actor, "target", entry->target, "notification_id",
        entry->meta->notification_id, "ground", entry->ground, "request_id", entry->request_id,
        "program", entry->program, "event_id", entry->meta->event_id, "details",
        details_json(entry));
}

static bool is_or_any(Str wanted, const char *text)
{
    return wanted.len == 0 || str_eq(wanted, str_from(text));
}

bool audit_filter_fits(
    const AuditFilter *filter, const char *kind, const Stentor__V1__AuditEntry *entry)
{
    int64_t at_us = entry->meta->occurred_at_us;
    return at_us >= filter->from_us && (filter->to_us == 0 || at_us < filter->to_us) &&
           is_or_any(filter->kind, kind) && is_or_any(filter->tenant, entry->meta->tenant) &&
           is_or_any(filter->actor, entry->actor) && is_or_any(filter->action, entry->action) &&
           (is_or_any(filter->target, entry->target) ||
            is_or_any(filter->target, entry->meta->notification_id));
}
