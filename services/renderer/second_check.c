// SPDX-License-Identifier: Apache-2.0
#include "services/renderer/second_check.h"

#include <assert.h>

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/codec/suppressed.h"
#include "stentor/v1/status.pb-c.h"

static_assert((int)SUPPRESSION_HASH_LEN == (int)ADDRESS_HASH_LEN, "they are the same hash");

// Empty: it cannot be read here, which the dispatcher will say of it.
static Str open_address(const Job *job)
{
    const Request *request = job->request;
    Str packed;
    if (job->key == NULL ||
        !unseal(
            job->key, str_from(request->meta->tenant), str_from(request->meta->notification_id),
            "address", request->address, job->arena, &packed, NULL)) {
        return STR_EMPTY;
    }
    const Stentor__V1__Address *address = (const Stentor__V1__Address *)event_unpack(
        &stentor__v1__address__descriptor, packed, job->arena, NULL);
    return address == NULL ? STR_EMPTY : str_from(address->address);
}

// By the hash that came with the request; and by the address where that is not enough: for the
// platform's list, and while there are several hash keys.
static SuppressionReason judge(
    const Suppressions *suppressions, const HashKeys *hash_keys, const Job *job)
{
    const Request *request = job->request;
    Str tenant = str_from(request->meta->tenant);
    Channel channel = (Channel)request->channel;
    Category category = (Category)request->category;
    bool wanted = suppressions_count_of_platform(suppressions) > 0 || hash_keys->count > 1;
    Str address = wanted ? open_address(job) : STR_EMPTY;
    uint8_t platform[ADDRESS_HASH_LEN];
    if (address.len > 0) {
        address_hash(hash_keys->keys[0], STR("platform"), channel, address, platform);
    }
    SuppressionReason found = suppressions_judge(
        suppressions, tenant, channel, category, request->address_hash.data,
        address.len > 0 ? platform : NULL, job->now_us);
    return found != SUPPRESSION_NONE
               ? found
               : suppressed_under_any(
                     suppressions, hash_keys, tenant, channel, category, address, job->now_us);
}

const char *second_check(
    const Suppressions *suppressions, const Sender *sender, const HashKeys *hash_keys,
    const Job *job, const char **ret_reason)
{
    const Request *request = job->request;
    if (sender->suspended) {
        *ret_reason = "the tenant is suspended";
        return "tenant_suspended";
    }
    if (suppressions_count(suppressions) == 0 ||
        request->address_hash.len != SUPPRESSION_HASH_LEN) {
        return NULL;
    }
    SuppressionReason found = judge(suppressions, hash_keys, job);
    *ret_reason = "the address was suppressed before it was rendered";
    return found == SUPPRESSION_NONE ? NULL : suppression_reason_name(found);
}

static char *borrow(const char *text)
{
    return (char *)(uintptr_t)text; // packing does not change it
}

bool suppressed_event(
    const Job *job, const char *reason_code, const char *reason, BusOut *ret_out, Error *err)
{
    const Request *request = job->request;
    const Stentor__V1__Meta *cause = request->meta;
    Stentor__V1__NotificationStatus status;
    stentor__v1__notification_status__init(&status);
    Stentor__V1__Meta meta;
    stentor__v1__meta__init(&meta);
    char id[EVENT_ID_SIZE];
    event_id_derive("status", str_from(cause->notification_id), STR("suppressed/0"), id);
    meta.event_id = id;
    meta.tenant = cause->tenant;
    meta.notification_id = cause->notification_id;
    meta.correlation_id = cause->correlation_id;
    meta.causation_id = cause->event_id;
    meta.occurred_at_us = job->now_us;
    status.meta = &meta;
    status.channel = request->channel;
    status.category = request->category;
    status.priority = request->priority;
    status.status = STENTOR__V1__STATUS__STATUS_SUPPRESSED;
    status.reason_code = borrow(reason_code);
    status.reason = borrow(reason);
    status.template_ = request->template_;
    status.template_version = request->template_version;
    status.recipient_id = request->recipient_id;
    status.address_hash = request->address_hash;
    status.accepted_at_us = request->accepted_at_us;
    status.scheduled_for_us = request->scheduled_for_us;
    status.batch_id = request->batch_id;
    status.resends = request->resends;
    status.digest_window_id = request->digest_window_id;
    return status_event(&status, job->traceparent, job->arena, ret_out, err);
}
