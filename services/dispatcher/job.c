// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/job.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/codec/suppressed.h"
#include "common/events/kinds.h"
#include "common/events/sealed.h"
#include "common/feed/feed_event.h"
#include "common/model/rules/mail_provider.h"
#include "services/dispatcher/routing/vendor_mail.h"
#include "services/dispatcher/routing/vendors.h"
#include "services/dispatcher/voice/calls.h"
#include "stentor/v1/request.pb-c.h"

static const int64_t DAY_US = 86400LL * 1000000;
enum { OLDEST_DAYS = 400, FILES_DELIVERIES_MAX = 150 };

// ---- reading ----

static OwnRetries own_retries(const Stentor__V1__Rendered *rendered)
{
    const Stentor__V1__Retries *retries = rendered->retries;
    return retries == NULL ? (OwnRetries){0}
                           : (OwnRetries){
                                 .wait_s = retries->wait_s,
                                 .count = retries->n_wait_s,
                                 .max_attempts = retries->max_attempts,
                             };
}

static bool check_fields(const Stentor__V1__Rendered *rendered, Error *err)
{
    if (channel_name((Channel)rendered->channel)[0] == '\0') {
        return error_set(err, ERROR_PERMANENT, "'channel' is %d", (int)rendered->channel);
    }
    if ((int)rendered->priority < PRIORITY_CRITICAL || (int)rendered->priority >= PRIORITY_COUNT) {
        return error_set(err, ERROR_PERMANENT, "'priority' is %d", (int)rendered->priority);
    }
    if (rendered->attempt < 1 || rendered->attempt > JOB_ATTEMPTS_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "'attempt' is %u: expected 1 to %d", rendered->attempt,
            JOB_ATTEMPTS_MAX);
    }
    if (rendered->rung > LADDER_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "'rung' is %u: expected at most %d", rendered->rung, LADDER_MAX);
    }
    const Ladder any = ladder_default();
    const OwnRetries own = own_retries(rendered);
    Ladder ladder;
    if (!ladder_own(&any, &own, &ladder, err)) {
        return error_wrap(err, "'retries'");
    }
    if (rendered->rendered_at_us < 0 || rendered->accepted_at_us < 0 ||
        rendered->expires_at_us < 0) {
        return error_set(err, ERROR_PERMANENT, "a time is negative");
    }
    if (rendered->content_checksum.len != SHA256_LEN) {
        return error_set(err, ERROR_PERMANENT, "'content_checksum' is not a SHA-256");
    }
    if (!calls_check(rendered, err)) {
        return false;
    }
    return sealed_check(rendered->address, "address", err) &&
           sealed_check(rendered->content, "content", err);
}

static bool read_key(Job *job, int64_t now_us, Error *err)
{
    const Stentor__V1__Meta *meta = job->rendered->meta;
    if (meta == NULL || !id_is_tenant(str_from(meta->tenant))) {
        return error_set(err, ERROR_PERMANENT, "'meta.tenant' is not a tenant's id");
    }
    int64_t created_ms = 0;
    if (!id_parse(str_from(meta->notification_id), "ntf_", &created_ms)) {
        return error_set(err, ERROR_PERMANENT, "'meta.notification_id' is not a notification's id");
    }
    // The ledger's partitions reach just so far.
    if (created_ms * 1000 > now_us + DAY_US || created_ms * 1000 < now_us - OLDEST_DAYS * DAY_US) {
        return error_set(
            err, ERROR_PERMANENT, "'meta.notification_id' is of a time too far from now");
    }
    LedgerKey *key = arena_zalloc(job->delivery->arena, sizeof *key);
    *key = (LedgerKey){
        .created_at_us = created_ms * 1000,
        .notification_id = str_from(meta->notification_id),
        .attempt = (int32_t)job->rendered->attempt,
        .tenant = str_from(meta->tenant),
        // A mail that an operator resends is sent, whatever a callback proved before.
        // One that is for a call without an answer is for nothing else.
        .retry = (job->rendered->attempt > 1 && job->rendered->resends == 0) ||
                 job->rendered->after_call > 0,
    };
    job->key = key;
    job->row_key = key;
    return true;
}

Str job_name(Str notification_id, int32_t attempt, char *space, size_t size)
{
    int used = snprintf(space, size, STR_FMT "/%d", STR_ARG(notification_id), attempt);
    return (Str){space, used > 0 && (size_t)used < size ? (size_t)used : 0};
}

bool job_read(Job *job, Delivery *delivery, int64_t now_us, Error *err)
{
    job->delivery = delivery;
    job->rendered = (Stentor__V1__Rendered *)event_unpack(
        &stentor__v1__rendered__descriptor, delivery->message.payload, delivery->arena, err);
    if (job->rendered == NULL || !read_key(job, now_us, err) || !check_fields(job->rendered, err)) {
        return false;
    }
    job->row = (LedgerRow){.rung = -1};
    char name[JOB_NAME_SIZE];
    job->name = arena_str(
        delivery->arena, job_name(job->key->notification_id, job->key->attempt, name, sizeof name));
    return true;
}

// Text for Postgres and protobuf: bytes that are not UTF-8 become '?', control characters a space.
static Str recordable(Arena *arena, Str text)
{
    if (text.len <= JOB_REPLY_MAX && str_is_utf8(text) && !str_has_control(text)) {
        return arena_str(arena, text);
    }
    char *out = arena_alloc(arena, JOB_REPLY_MAX);
    size_t len = 0;
    while (text.len > 0) {
        size_t step = str_utf8_step(text);
        size_t size = step > 0 ? step : 1;
        if (len + size > JOB_REPLY_MAX) {
            break;
        }
        memcpy(out + len, step > 0 ? text.ptr : "?", size);
        if (step == 1 && ((uint8_t)out[len] < 0x20 || out[len] == 0x7f)) {
            out[len] = ' ';
        }
        len += size;
        text = str_slice(text, size, text.len);
    }
    return (Str){out, len};
}

// ---- opening ----

static void decide(Job *job, const char *reason_code, Str reason, bool dead_letter, int64_t now_us)
{
    job->decided = true;
    job->row = (LedgerRow){
        .state = LEDGER_FAILED,
        .claimed_at_us = now_us,
        .finished_at_us = now_us,
        .rung = dead_letter ? (int32_t)job->rendered->rung : -1,
        .code = str_from(reason_code),
        .reply = recordable(job->delivery->arena, reason),
    };
}

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

static const ProtobufCMessage *open_content(
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

static const Stentor__V1__Address *open_address(
    const Job *job, const JobOpening *opening, Error *err)
{
    Str packed;
    if (!unseal_field(job, opening, "address", &packed, err)) {
        return NULL;
    }
    return (const void *)event_unpack(
        &stentor__v1__address__descriptor, packed, opening->scratch, err);
}

typedef struct From {
    Str name, address;
} From;

static From choose_sender(
    const Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content)
{
    From from = {str_from(content->from_name), str_from(content->from)};
    if (from.address.len == 0 &&
        !directory_sender(opening->directory, job->key->tenant, &from.name, &from.address)) {
        from = (From){opening->rules->from_name, opening->rules->from};
    }
    return from;
}

static Str lowered(Arena *arena, Str text)
{
    char *copy = arena_cstr(arena, text);
    for (size_t i = 0; i < text.len; i++) {
        copy[i] = (char)tolower((unsigned char)copy[i]);
    }
    return (Str){copy, text.len};
}

// The last check of a From, wherever it came from.
static bool is_verified(const Job *job, const JobOpening *opening, Str address)
{
    return str_eq(address, opening->rules->from) ||
           directory_may_send_as(opening->directory, job->key->tenant, address);
}

static const Copies *choose_copies(
    const Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content)
{
    const CopiesWant want = {
        .known = directory_suppressions(opening->directory),
        .hash_keys = &opening->rules->hash_keys,
        .rendered = job->rendered,
        .content = content,
        .now_us = opening->now_us,
        .arena = job->delivery->arena,
    };
    return copies_choose(&want);
}

// false: *ret_code and err say why; ERROR_CANCELLED: they are on their way.
static bool gather_files(
    Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content, MimeFile *files,
    const char **ret_code, Error *err)
{
    size_t bytes = 0;
    bool coming = false;
    for (size_t i = 0; i < content->n_attachments; i++) {
        const Stentor__V1__Attachment *file = content->attachments[i];
        Str plain = STR_EMPTY;
        switch (attachments_get(opening->attachments, file, opening->now_ms, &plain, err)) {
        case ATTACHMENT_HERE:
            break;
        case ATTACHMENT_COMING:
            coming = true; // the others are asked for, too
            break;
        case ATTACHMENT_AWAY:
            *ret_code = "attachment_unreachable";
            err->kind = ERROR_TRANSIENT;
            return false;
        case ATTACHMENT_LOST:
            *ret_code = "attachment_lost";
            err->kind = ERROR_PERMANENT;
            return false;
        }
        bytes += file->size_bytes;
        files[i] = (MimeFile){
            str_from(file->name), str_from(file->content_type), str_from(file->content_id), plain};
    }
    if (coming || !attachments_hold(opening->attachments, bytes)) {
        bool late = job->delivery->message.delivered > FILES_DELIVERIES_MAX;
        *ret_code = "attachment_unreachable";
        return error_set(
            err, late ? ERROR_TRANSIENT : ERROR_CANCELLED,
            "the mail's attachments did not come from object storage in time");
    }
    job->attached = bytes;
    return true;
}

// What the mail carries beside its content, into job->dress. false: *ret_code and err say why;
// ERROR_CANCELLED: a key is being read.
static bool make_dress(
    Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content, Str from,
    const char **ret_code, Error *err)
{
    const DressWant want = {
        .rules = &opening->rules->dress,
        .domains = directory_send_domains(opening->directory),
        .rendered = job->rendered,
        .from = from,
        .list_id = str_from(content->list_id),
        .arena = job->delivery->arena,
    };
    if (dress_make(&want, &job->dress, err)) {
        return true;
    }
    bool unreadable = err->kind == ERROR_TRANSIENT || err->kind == ERROR_CANCELLED;
    *ret_code = unreadable ? "dkim_key_unreadable" : *ret_code;
    if (err->kind == ERROR_CANCELLED && !opening->patient) {
        err->kind = ERROR_TRANSIENT; // its reading takes too long
    }
    return false;
}

static bool fill_envelope(Job *job, const MimeMail *mime, const Copies *copies, Error *err)
{
    Arena *arena = job->delivery->arena;
    bool from_utf8 = false;
    bool reply_utf8 = false;
    if (!mail_address_check("from", mime->from, &from_utf8, err) ||
        (mime->reply_to.len > 0 &&
         !mail_address_check("reply_to", mime->reply_to, &reply_utf8, err))) {
        return false;
    }
    job->mail.from =
        job->dress.return_path.len > 0 ? job->dress.return_path : arena_str(arena, mime->from);
    job->mail.envid = job->dress.token;
    job->mail.to = arena_str(arena, mime->to);
    job->mail.copies = copies->envelope;
    job->mail.copy_count = copies->count;
    job->mail.utf8 = job->mail.utf8 || from_utf8 || reply_utf8 || copies->utf8;
    return true;
}

static bool compose(
    Job *job, const JobOpening *opening, const Stentor__V1__EmailContent *content, const From *from,
    const Stentor__V1__Address *address, const char **ret_code, Error *err)
{
    Arena *arena = job->delivery->arena;
    const Copies *copies = choose_copies(job, opening, content);
    MimeFile *files = arena_array(opening->scratch, content->n_attachments + 1, sizeof *files);
    *ret_code = "invalid_content";
    if (content->n_attachments > 0 && !gather_files(job, opening, content, files, ret_code, err)) {
        return false;
    }
    MimeMail mime = {
        .cc = copies->cc,
        .cc_count = copies->cc_count,
        .files = files,
        .file_count = content->n_attachments,
        .from = from->address,
        .from_name = from->name,
        .to = str_from(address->address),
        .to_name = str_from(address->name),
        .reply_to = str_from(content->reply_to),
        .subject = str_from(content->subject),
        .html = str_from(content->html),
        .text = str_from(content->text),
        .unsubscribe_url = str_from(content->unsubscribe_url),
        .id = job->key->notification_id,
        .id_domain = opening->rules->mail_domain,
        .date_us =
            job->rendered->rendered_at_us, // of the event, so that a resend is equal byte by byte
    };
    if (!make_dress(job, opening, content, from->address, ret_code, err)) {
        return false;
    }
    dress_put_on(&job->dress, &mime);
    buf_clear(opening->buf);
    // Most vendors with HTTP APIs take the fields: writing the message was 15 us of a mail of 4 KB.
    bool whole = vendors_want_message(&job->route);
    if (!(whole ? mime_compose : mime_check)(&mime, opening->buf, err)) {
        return false;
    }
    if (!fill_envelope(job, &mime, copies, err)) {
        return false;
    }
    for (size_t i = 0; i < job->dress.signer_count; i++) {
        job->dress.signers[i].rewritten = vendors_rewrite_message(&job->route);
    }
    if (whole &&
        !dress_sign(
            &job->dress, buf_view(opening->buf), mime.date_us, arena, &job->mail.message, err)) {
        return false;
    }
    job->message_id = str_from(arena_printf(
        arena, STR_FMT "@" STR_FMT, STR_ARG(job->key->notification_id),
        STR_ARG(opening->rules->mail_domain)));
    if (job->route.routed) {
        job->mail.content = vendor_mail_make(job, &mime);
    }
    return true;
}

// A mail whose address was suppressed or tenant suspended while it waited is not sent. true:
// decided.
static bool is_barred(Job *job, const JobOpening *opening, const char *to)
{
    const Stentor__V1__Rendered *rendered = job->rendered;
    const Suppressions *known = directory_suppressions(opening->directory);
    if (directory_is_suspended(opening->directory, job->key->tenant)) {
        decide(job, "tenant_suspended", STR("the tenant is suspended"), false, opening->now_us);
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
        decide(
            job, suppression_reason_name(reason),
            STR("the address was suppressed before it could be sent"), false, opening->now_us);
    }
    return reason != SUPPRESSION_NONE;
}

// What it needs cannot be had now: it takes a rung of the ladder, and nothing is sent. The attempt
// counts as one at the vendor that was to have it, so that it stands among the others.
static void put_off(Job *job, const JobOpening *opening, const char *code, const Error *why)
{
    const SendResult result = {
        .state = SEND_UNSENT,
        .code = str_from(code),
        .text = str_from(why->text),
    };
    job->decided = true;
    if (!job->route.routed) {
        job->place = (LedgerPlace){str_from(opening->rules->vendor), STR_EMPTY, STR_EMPTY};
    }
    job->row.claimed_at_us = opening->now_us;
    job_outcome(job, opening->rules, &result, opening->now_us);
}

// The vendors that its route gives it. false: none may take it, decided; or *ret_wait, for CONFIG
// may still name one.
static bool has_vendor(Job *job, const JobOpening *opening, const char *address, bool *ret_wait)
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
        decide(job, "no_vendor", str_from(why), true, opening->now_us);
    }
    return false;
}

// false: CONFIG may still verify its sender or name its vendor's credential, or its files are on
// their way.
static bool make_mail(Job *job, const JobOpening *opening, const BodyPrefix *prefix)
{
    Error err = {0};
    bool wait = false;
    const char *code = "";
    From from = {STR_EMPTY, STR_EMPTY};
    const Stentor__V1__EmailContent *content = (const void *)open_content(
        job, opening, prefix, &stentor__v1__email_content__descriptor, &err);
    const Stentor__V1__Address *to = content != NULL ? open_address(job, opening, &err) : NULL;
    if (to != NULL) {
        from = choose_sender(job, opening, content);
        job->from_domain = lowered(job->delivery->arena, mail_domain_of(from.address));
        job->provider = mail_provider(str_from(to->address));
    }
    if (to == NULL) {
        decide(job, "unreadable_content", str_from(err.text), true, opening->now_us);
    } else if (!mail_address_check("to", str_from(to->address), &job->mail.utf8, &err)) {
        decide(job, "invalid_address", str_from(err.text), false, opening->now_us);
    } else if (is_barred(job, opening, to->address)) {
        return true;
    } else if (!is_verified(job, opening, from.address)) {
        if (opening->patient) {
            return false;
        }
        (void)error_set(
            &err, ERROR_PERMANENT,
            "the domain of sender '" STR_FMT "' is not verified for tenant '" STR_FMT
            "' (HINT: stentor tenant sender-domain add TENANT DOMAIN)",
            STR_ARG(str_slice(from.address, 0, 80)), STR_ARG(job->key->tenant));
        decide(job, "sender_unverified", str_from(err.text), true, opening->now_us);
    } else if (!has_vendor(job, opening, to->address, &wait)) {
        return !wait;
    } else if (!compose(job, opening, content, &from, to, &code, &err)) {
        if (err.kind == ERROR_CANCELLED) {
            return false;
        }
        if (err.kind == ERROR_TRANSIENT) {
            put_off(job, opening, code, &err);
        } else {
            decide(job, code, str_from(err.text), true, opening->now_us);
        }
    }
    return true;
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

// A message of a channel other than e-mail, for a vendor's HTTP API. false: as make_mail().
static bool make_message(Job *job, const JobOpening *opening, const BodyPrefix *prefix)
{
    Error err = {0};
    bool wait = false;
    const ProtobufCMessage *content = open_content(
        job, opening, prefix, event_type_of_content((Channel)job->rendered->channel), &err);
    const Stentor__V1__Address *to = content != NULL ? open_address(job, opening, &err) : NULL;
    if (to == NULL) {
        decide(job, "unreadable_content", str_from(err.text), true, opening->now_us);
        return true;
    }
    if (is_barred(job, opening, to->address)) {
        return true;
    }
    if (!has_vendor(job, opening, to->address, &wait)) {
        return !wait;
    }
    if (calls_wait_for_morning(job, opening)) {
        return true;
    }
    job->mail.to = arena_str(job->delivery->arena, str_from(to->address));
    job->mail.content = vendor_mail_message(job, content);
    if (job->rendered->channel == STENTOR__V1__CHANNEL__CHANNEL_INAPP &&
        !make_item(job, opening, content, &err)) {
        decide(job, "invalid_content", str_from(err.text), true, opening->now_us);
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
        decide(job, "no_vendor", str_from(reason), true, opening->now_us);
        return true;
    }
    if (rendered->expires_at_us > 0 && rendered->expires_at_us <= opening->now_us) {
        decide(
            job, "expired", STR("the notification expired before it could be sent"), false,
            opening->now_us);
        return true;
    }
    if (opening->address_key == NULL || opening->content_key == NULL) {
        decide(
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
               ? make_mail(job, opening, prefix)
               : make_message(job, opening, prefix);
}

// ---- the ledger's answer ----

Course job_classify(const Job *job, Str owner, UnknownPolicy policy)
{
    const LedgerConflict *conflict = job->conflict;
    if (conflict == NULL) {
        return COURSE_BEGIN;
    }
    if (conflict->row.state == LEDGER_NONE) {
        return COURSE_RECHECK;
    }
    if (conflict->row.state != LEDGER_CLAIMED) {
        return COURSE_REPEAT;
    }
    // Released; or ours and not in flight here, so its claim was committed but the answer was lost,
    // and it was never sent.
    if (conflict->owner.len == 0 || str_eq(conflict->owner, owner)) {
        return COURSE_TAKE_OVER;
    }
    if (conflict->wait_ms > 0) {
        return COURSE_WAIT;
    }
    return policy == UNKNOWN_PARK && !job->decided ? COURSE_PARK : COURSE_TAKE_OVER;
}

// ---- outcome ----

static Ladder ladder_of(const Job *job, const JobRules *rules)
{
    Ladder ladder = *ladders_of(&rules->ladders, (Channel)job->rendered->channel);
    const OwnRetries own = own_retries(job->rendered);
    (void)ladder_own(&ladder, &own, &ladder, NULL); // check_fields has refused others
    return ladder;
}

// Of ISO 4217; the ledger takes no other.
static bool is_currency(Str text)
{
    bool good = text.len == 3;
    for (size_t i = 0; good && i < text.len; i++) {
        good = text.ptr[i] >= 'A' && text.ptr[i] <= 'Z';
    }
    return good;
}

// As the vendor counts them, else as we do; of what it took.
static uint32_t segments_of(const Job *job, const SendResult *result)
{
    const VendorMail *mail = job->mail.content;
    bool taken = result->state == SEND_ANSWERED && result->reply == REPLY_ACCEPTED;
    uint32_t own = taken && mail != NULL ? mail->segments : 0;
    uint32_t segments = result->segments > 0 ? result->segments : own;
    return segments <= INT16_MAX ? segments : INT16_MAX;
}

// What the row says of the vendor and its answer.
static void note_result(Job *job, const SendResult *result, int64_t now_us)
{
    static const char *const classes[] = {
        [REPLY_ACCEPTED] = "",
        [REPLY_RETRY] = "retry",
        [REPLY_THROTTLED] = "throttled",
        [REPLY_TERMINAL] = "terminal",
        [REPLY_BAD_ADDRESS] = "bad_address",
        [REPLY_CONFIG] = "config",
        [REPLY_ELSEWHERE] = "elsewhere",
    };
    Arena *arena = job->delivery->arena;
    LedgerRow *row = &job->row;
    bool is_smtp = str_eq(job->place.vendor, STR(ROUTING_SMTP));
    row->finished_at_us = now_us;
    row->due_at_us = 0;
    row->rung = -1;
    row->vendor = job->place.vendor;
    row->credential = job->place.credential;
    row->vendor_key = job->place.key;
    row->vendor_message_id =
        is_smtp ? job->message_id : recordable(arena, result->vendor_message_id);
    row->code = recordable(arena, result->code);
    row->enhanced = recordable(arena, result->enhanced);
    row->reply = recordable(arena, result->text);
    row->reply_class =
        result->state == SEND_ANSWERED ? str_from(classes[result->reply]) : STR_EMPTY;
    row->next_step = STR_EMPTY;
    row->segments = segments_of(job, result);
    bool priced = result->cost_micros > 0 && is_currency(result->currency);
    row->cost_micros = priced ? result->cost_micros : 0;
    row->currency = priced ? recordable(arena, result->currency) : STR_EMPTY;
}

const SendResult *job_keep_result(const Job *job, const SendResult *result)
{
    Arena *arena = job->delivery->arena;
    SendResult *kept = arena_zalloc(arena, sizeof *kept);
    *kept = (SendResult){
        .state = result->state,
        .reply = result->reply,
        .of_recipient = result->of_recipient,
        .retry_after_ms = result->retry_after_ms,
        .code = recordable(arena, result->code),
        .enhanced = recordable(arena, result->enhanced),
        .text = recordable(arena, result->text),
        .currency = STR_EMPTY, // nothing was sent
    };
    return kept;
}

void job_decide(Job *job, const char *reason_code, const char *reason, int64_t now_us)
{
    int64_t claimed_at_us = job->row.claimed_at_us;
    int32_t unknown_count = job->row.unknown_count;
    decide(job, reason_code, str_from(reason), false, now_us);
    job->row.claimed_at_us = claimed_at_us;
    job->row.unknown_count = unknown_count;
}

// [0, 1) from the attempt's name: retries of many mails spread, and the same attempt always gets
// the same time.
static double jitter_of(const Job *job)
{
    return (double)(str_hash(job->name) >> 11) / 9007199254740992.0;
}

static void defer(Job *job, const JobRules *rules, const SendResult *result, int64_t now_us)
{
    // Busy servers and greylisting end within a day and use no rung until then; a server that
    // always answers 4xx must not hold a mail for ever.
    const int64_t free_us = JOB_THROTTLED_FREE_H * 3600LL * 1000000;
    bool free = result->state == SEND_ANSWERED && result->reply == REPLY_THROTTLED &&
                now_us - job->rendered->rendered_at_us < free_us &&
                job->rendered->retries == NULL; // its caller counts every attempt
    uint32_t used = job->rendered->rung;
    const Ladder own = ladder_of(job, rules);
    const Ladder *ladder = &own;
    uint32_t rung = free && used >= ladder->count && used > 0 ? ladder->count - 1 : used;
    bool more =
        job->rendered->attempt < JOB_ATTEMPTS_MAX &&
        ladder_next(
            ladder, rung, now_us, result->retry_after_ms, jitter_of(job), &job->row.due_at_us);
    job->row.state = more ? LEDGER_DEFERRED : LEDGER_FAILED;
    job->row.rung = (int32_t)(more && !free ? used + 1 : used);
}

void job_defer(Job *job, const SendResult *result, int64_t due_us, const char *step, int64_t now_us)
{
    note_result(job, result, now_us);
    bool more = job->rendered->attempt < JOB_ATTEMPTS_MAX;
    job->row.state = more ? LEDGER_DEFERRED : LEDGER_FAILED;
    job->row.due_at_us = more ? due_us : 0;
    job->row.rung = (int32_t)job->rendered->rung;
    job->row.next_step = str_from(step);
}

static void note_next_call(Job *job, const JobRules *rules, int64_t now_us)
{
    // Without a public URL nothing is heard of a call.
    if (job->rendered->channel == STENTOR__V1__CHANNEL__CHANNEL_VOICE &&
        rules->public_url.len > 0) {
        Ladder ladder = ladder_of(job, rules);
        calls_plan_next(job, &ladder, jitter_of(job), now_us);
    }
}

void job_outcome(Job *job, const JobRules *rules, const SendResult *result, int64_t now_us)
{
    LedgerRow *row = &job->row;
    note_result(job, result, now_us);
    if (result->state != SEND_ANSWERED) {
        defer(job, rules, result, now_us);
        return;
    }
    switch (result->reply) {
    case REPLY_ACCEPTED:
        row->state = LEDGER_SENT;
        note_next_call(job, rules, now_us);
        break;
    case REPLY_TERMINAL:
    case REPLY_BAD_ADDRESS:
        row->state = LEDGER_FAILED;
        break;
    case REPLY_ELSEWHERE: // no other vendor is there
        row->state = LEDGER_FAILED;
        break;
    case REPLY_CONFIG:
    case REPLY_RETRY:
    case REPLY_THROTTLED:
        defer(job, rules, result, now_us);
        break;
    }
}

bool job_shorten_row(Job *job)
{
    LedgerRow *row = &job->row;
    if (row->vendor_message_id.len + row->enhanced.len + row->reply.len == 0) {
        return false;
    }
    row->vendor_message_id = row->enhanced = row->reply = STR_EMPTY;
    row->unknown_count = row->unknown_count < INT16_MAX ? row->unknown_count : INT16_MAX;
    return true;
}
