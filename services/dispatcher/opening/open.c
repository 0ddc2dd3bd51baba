// SPDX-License-Identifier: Apache-2.0
// What every channel has, and the messages of those other than e-mail.
#include <string.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/codec/suppressed.h"
#include "common/events/kinds.h"
#include "common/feed/feed_event.h"
#include "services/dispatcher/opening/opening.h"
#include "services/dispatcher/routing/vendor_mail.h"
#include "services/dispatcher/routing/vendors.h"
#include "services/dispatcher/voice/calls.h"

static bool unseal_field(
    const Job *job, const JobOpening *opening, const char *field, Str *ret, Error *err)
{
    bool is_address = strcmp(field, "address") == 0;
    DataKey *key = is_address ? opening->address_key : opening->content_key;
    const Stentor__V1__Sealed *sealed =
        is_address ? job->rendered->address : job->rendered->content;
    return unseal(
               key, job->key->tenant, job->key->notification_id, field, sealed, opening->scratch,
               ret, err) ||
           error_wrap(err, "'%s'", field);
}

const ProtobufCMessage *opening_content(
    const Job *job, const JobOpening *opening, const BodyPrefix *prefix,
    const ProtobufCMessageDescriptor *type, Error *err)
{
    Str frame;
    Str packed;
    if (!unseal_field(job, opening, "content", &frame, err) ||
        !body_unpack(prefix, frame, opening->scratch, &packed, err)) {
        return NULL;
    }
    uint8_t checksum[SHA256_LEN];
    sha256(packed, checksum);
    if (memcmp(checksum, job->rendered->content_checksum.data, SHA256_LEN) != 0) {
        error_set(err, ERROR_PERMANENT, "'content' does not match 'content_checksum'");
        return NULL;
    }
    return event_unpack(type, packed, opening->scratch, err);
}

const Stentor__V1__Address *opening_address(const Job *job, const JobOpening *opening, Error *err)
{
    Str packed;
    if (!unseal_field(job, opening, "address", &packed, err)) {
        return NULL;
    }
    return (const void *)event_unpack(
        &stentor__v1__address__descriptor, packed, opening->scratch, err);
}

bool opening_is_barred(Job *job, const JobOpening *opening, const char *to)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    const Suppressions *known = directory_suppressions(opening->directory);
    if (directory_is_suspended(opening->directory, job->key->tenant)) {
        job_decide_unsent(
            job, "tenant_suspended", STR("the tenant is suspended"), false, opening->now_us);
        return true;
    }
    if (suppressions_count(known) == 0 || rendered->address_hash.len != SUPPRESSION_HASH_LEN) {
        return false;
    }
    uint8_t other[ADDRESS_HASH_LEN];
    bool platform = suppressions_count_of_platform(known) > 0;
    if (platform) {
        address_hash(
            opening->rules->hash_keys.keys[0], STR("platform"), (Channel)rendered->channel,
            str_from(to), other);
    }
    SuppressionReason reason = suppressions_classify(
        known, job->key->tenant, (Channel)rendered->channel, (Category)rendered->category,
        rendered->address_hash.data, platform ? other : NULL, opening->now_us);
    if (reason == SUPPRESSION_NONE) {
        reason = suppressed_under_any(
            known, &opening->rules->hash_keys, job->key->tenant, (Channel)rendered->channel,
            (Category)rendered->category, str_from(to), opening->now_us);
    }
    if (reason == SUPPRESSION_NONE) {
        reason = mail_scope_suppressed(
            known, job->key->tenant, (Channel)rendered->channel, (Category)rendered->category,
            job->from_domain, str_from(to), opening->now_us);
    }
    if (reason != SUPPRESSION_NONE) {
        job_decide_unsent(
            job, suppression_reason_name(reason),
            STR("the address was suppressed before it could be sent"), false, opening->now_us);
    }
    return reason != SUPPRESSION_NONE;
}

bool opening_has_vendor(Job *job, const JobOpening *opening, const char *address, bool *ret_wait)
{
    if (opening->vendors == NULL) {
        return true;
    }
    vendors_choose(opening->vendors, job, str_from(address), opening->now_us);
    const JobRoute *route = &job->route;
    if (!route->routed || route->count > 0 || route->doubt != NEXT_END) {
        return true;
    }
    *ret_wait = opening->patient;
    if (!opening->patient) {
        const char *why =
            route->name[0] == '\0'
                ? arena_printf(
                      job->delivery->arena,
                      "no vendor of channel %s that takes such an address has a credential (HINT: "
                      "stentor credential put VENDOR NAME)",
                      channel_name((Channel)job->rendered->channel))
                : arena_printf(
                      job->delivery->arena,
                      "route '%s' has no vendor that may take it (HINT: stentor route list, "
                      "stentor credential list)",
                      route->name);
        job_decide_unsent(job, "no_vendor", str_from(why), true, opening->now_us);
    }
    return false;
}

// What the vendor `inapp` stores (vendor/inapp/inapp_vendor.h).
static bool make_item(
    Job *job, const JobOpening *opening, const ProtobufCMessage *content, Error *err)
{
    uint8_t recipient[FEED_RECIPIENT_LEN];
    job->mail.tenant = job->key->tenant;
    feed_recipient(opening->rules->master, job->key->tenant, job->mail.to, recipient);
    return feed_item_pack(
        job->rendered, (const void *)content, recipient, opening->content_key, job->delivery->arena,
        &job->mail.message, err);
}

// A message of a channel other than e-mail, for a vendor's HTTP API. false: as opening_mail().
static bool make_message(Job *job, const JobOpening *opening, const BodyPrefix *prefix)
{
    Error err = {0};
    bool wait = false;
    const ProtobufCMessage *content = opening_content(
        job, opening, prefix, event_type_of_content((Channel)job->rendered->channel), &err);
    const Stentor__V1__Address *to = content != NULL ? opening_address(job, opening, &err) : NULL;
    if (to == NULL) {
        job_decide_unsent(job, "unreadable_content", str_from(err.text), true, opening->now_us);
        return true;
    }
    if (opening_is_barred(job, opening, to->address)) {
        return true;
    }
    if (!opening_has_vendor(job, opening, to->address, &wait)) {
        return !wait;
    }
    if (calls_wait_for_morning(job, opening)) {
        return true;
    }
    job->mail.to = arena_str(job->delivery->arena, str_from(to->address));
    job->mail.content = vendor_mail_message(job, content);
    if (job->rendered->channel == STENTOR__V1__CHANNEL__CHANNEL_INAPP &&
        !make_item(job, opening, content, &err)) {
        job_decide_unsent(job, "invalid_content", str_from(err.text), true, opening->now_us);
    }
    return true;
}

static bool is_carried(const JobOpening *opening, int channel)
{
    return channel == STENTOR__V1__CHANNEL__CHANNEL_EMAIL ||
           (event_type_of_content((Channel)channel) != NULL && opening->vendors != NULL);
}

bool job_open(Job *job, const JobOpening *opening)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    if (!is_carried(opening, (int)rendered->channel)) {
        const char *reason = arena_printf(
            job->delivery->arena, "no vendor for channel %s",
            channel_name((Channel)rendered->channel));
        job_decide_unsent(job, "no_vendor", str_from(reason), true, opening->now_us);
        return true;
    }
    if (rendered->expires_at_us > 0 && rendered->expires_at_us <= opening->now_us) {
        job_decide_unsent(
            job, "expired", STR("the notification expired before it could be sent"), false,
            opening->now_us);
        return true;
    }
    if (opening->address_key == NULL || opening->content_key == NULL) {
        job_decide_unsent(
            job, "recipient_erased", STR("the recipient's data was erased"), false,
            opening->now_us);
        return true;
    }
    const BodyPrefix *prefix = NULL;
    if (rendered->content_prefix_id != 0) {
        prefix = directory_prefix(opening->directory, rendered, job->key->tenant);
        if (prefix == NULL) {
            return false;
        }
    }
    return rendered->channel == STENTOR__V1__CHANNEL__CHANNEL_EMAIL
               ? opening_mail(job, opening, prefix)
               : make_message(job, opening, prefix);
}
