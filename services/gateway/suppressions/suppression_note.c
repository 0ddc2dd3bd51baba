// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/suppressions/suppression_note.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/model/enums.h"
#include "common/model/suppressions.h"

void suppression_note_release(
    AuditLog *log, const Stentor__V1__Suppression *entry, AuditDone done, void *ctx)
{
    char hash[2 * SUPPRESSION_HASH_LEN + 1];
    char made_at[CLOCK_RFC3339_SIZE];
    hex_encode(entry->address_hash.data, SUPPRESSION_HASH_LEN, hash);
    clock_format(entry->created_at_us, made_at);
    Category category = (Category)entry->category;
    const AuditDetail details[] = {
        {"channel", channel_name((Channel)entry->channel)},
        {"category", category == CATEGORY_NONE ? "any" : category_name(category)},
        {"reason", suppression_reason_name((SuppressionReason)entry->reason)},
        {"address_hash", hash},
        {"made_at", made_at},
    };
    const AuditNote note = {
        .kind = AUDIT_SUPPRESSION,
        .tenant = entry->tenant,
        .action = "suppression.released",
        .actor = entry->released_by,
        .target = entry->id,
        .request_id = entry->id,
        .program = "stentor-gateway",
        .details = details,
        .detail_count = sizeof details / sizeof details[0],
        .at_us = entry->released_at_us,
    };
    audit_log_append(log, &note, done, ctx);
}
