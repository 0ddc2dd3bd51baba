// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/suppress.h"

#include "common/bus/suppression_event.h"
#include "common/model/ladder.h"

SuppressionReason suppress_reason(const LedgerRow *row)
{
    if (row->state != LEDGER_FAILED) {
        return SUPPRESSION_NONE;
    }
    if (row->vendor.len == 0) {
        return str_eq(row->code, STR("invalid_address")) ? SUPPRESSION_INVALID_ADDRESS
                                                         : SUPPRESSION_NONE;
    }
    int64_t code = 0;
    if (row->rung >= 0 || !str_to_i64(row->code, &code) || code < 200 || code > 599 ||
        reply_classify((int)code, row->enhanced) != REPLY_BAD_ADDRESS) {
        return SUPPRESSION_NONE;
    }
    bool gone = str_eq(row->enhanced, STR("5.1.1")) || str_eq(row->enhanced, STR("5.1.6"));
    return gone ? SUPPRESSION_HARD_BOUNCE : SUPPRESSION_INVALID_ADDRESS;
}

bool suppress_address(Job *job, const Suppressions *known, Error *err)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    SuppressionReason reason = suppress_reason(&job->row);
    if (reason == SUPPRESSION_NONE || rendered->address_hash.len != SUPPRESSION_HASH_LEN ||
        !suppressions_wants(
            known, job->key.tenant, (Channel)rendered->channel, CATEGORY_NONE,
            rendered->address_hash.data, reason, job->row.finished_at_us)) {
        return true;
    }
    Arena *arena = job->delivery->arena;
    SuppressionSpec spec = {
        .tenant = job->key.tenant,
        .channel = (Channel)rendered->channel,
        .hash = rendered->address_hash.data,
        .reason = reason,
        .at_us = job->row.finished_at_us,
        .by = STR("dispatcher"),
        .note = job->row.reply,
        .notification_id = job->key.notification_id,
        .address = job->mail.to, // empty when only the ledger's row is known
    };
    BusOut out;
    if (!suppression_event(suppression_make(&spec, arena), arena, &out, err)) {
        return false;
    }
    out.traceparent = job->delivery->message.traceparent;
    delivery_emit(job->delivery, &out);
    return true;
}
