// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/suppress.h"

#include "common/bus/events/suppression_event.h"
#include "common/config/config_store.h"
#include "common/model/rules/ladder.h"
#include "common/vendor/vendor_api.h"

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
    // A row without a class is of a release before there were any: an SMTP server's.
    bool bad = row->reply_class.len > 0
                   ? str_eq(row->reply_class, STR("bad_address"))
                   : str_to_i64(row->code, &code) && code >= 200 && code <= 599 &&
                         reply_classify((int)code, row->enhanced) == REPLY_BAD_ADDRESS;
    const VendorApi *api = vendor_find(row->vendor);
    const VendorReason *said = api != NULL ? vendor_reason(api, row->reply) : NULL;
    if (row->rung < 0 && said != NULL && said->suppress != SUPPRESSION_NONE) {
        return said->suppress;
    }
    if (row->rung >= 0 || !bad) {
        return SUPPRESSION_NONE;
    }
    bool gone = str_eq(row->enhanced, STR("5.1.1")) || str_eq(row->enhanced, STR("5.1.6"));
    return gone ? SUPPRESSION_HARD_BOUNCE : SUPPRESSION_INVALID_ADDRESS;
}

// The job may be gone: it ends with its settle, and its delivery with this.
static void on_stored(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate;
    delivery_held(ctx, err);
}

bool suppress_address(Job *job, Bus *bus, const Suppressions *known, Error *err)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    SuppressionReason reason = suppress_reason(&job->row);
    if (reason == SUPPRESSION_NONE || rendered->address_hash.len != SUPPRESSION_HASH_LEN ||
        !suppressions_wants(
            known, job->key->tenant, (Channel)rendered->channel, CATEGORY_NONE,
            rendered->address_hash.data, reason, job->row.finished_at_us, 0)) {
        return true;
    }
    Arena *arena = job->delivery->arena;
    SuppressionSpec spec = {
        .tenant = job->key->tenant,
        .channel = (Channel)rendered->channel,
        .hash = rendered->address_hash.data,
        .reason = reason,
        .at_us = job->row.finished_at_us,
        // The vendor has heard a STOP itself.
        .by = reason == SUPPRESSION_OPT_OUT ? STR(SUPPRESSION_BY_REPLY) : STR("dispatcher"),
        .note = job->row.reply,
        .notification_id = job->key->notification_id,
        .address = job->mail.to, // empty when only the ledger's row is known
    };
    const Stentor__V1__Suppression *entry = suppression_make(&spec, arena);
    if (!suppression_check(entry, err)) {
        return false;
    }
    delivery_hold(job->delivery);
    suppression_store(
        bus, known, entry, job->delivery->message.traceparent, arena, on_stored, job->delivery);
    return true;
}
