// SPDX-License-Identifier: Apache-2.0
#include "services/renderer/second_check.h"

#include <assert.h>

#include "common/bus/events/status_event.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/codec/suppressed.h"
#include "common/events/meta.h"
#include "common/events/status.h"
#include "stentor/v1/status.pb-c.h"

static_assert((int)SUPPRESSION_HASH_LEN == (int)ADDRESS_HASH_LEN, "they are the same hash");

// Empty: it cannot be read here; the dispatcher will report that.
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

// By the request's hash; and by the address where the hash is not enough: for the platform's list,
// and while there are several hash keys.
static SuppressionReason classify(
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
    SuppressionReason found = suppressions_classify(
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
    SuppressionReason found = classify(suppressions, hash_keys, job);
    *ret_reason = "the address was suppressed before it was rendered";
    return found == SUPPRESSION_NONE ? NULL : suppression_reason_name(found);
}

bool suppressed_event(
    const Job *job, const char *reason_code, const char *reason, BusOut *ret_out, Error *err)
{
    const Stentor__V1__Meta *cause = job->request->meta;
    char id[EVENT_ID_SIZE];
    event_id_derive("status", str_from(cause->notification_id), STR("suppressed/0"), id);
    Stentor__V1__Meta meta = meta_follow(cause, id, job->now_us);
    StatusSpec spec = {&meta, STATUS_SUPPRESSED, reason_code, reason};
    Stentor__V1__NotificationStatus status = status_of_request(&spec, job->request);
    status.digest_window_id = job->request->digest_window_id;
    return status_event(&status, job->traceparent, job->arena, ret_out, err);
}
