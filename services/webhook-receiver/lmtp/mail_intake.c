// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/lmtp/mail_intake.h"

#include <string.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/codec/hash.h"
#include "common/codec/seal.h"
#include "common/events/meta.h"
#include "stentor/v1/inbound.pb-c.h"

#define REPLY_STORED "250 2.0.0 stored"
#define REPLY_LATER "451 4.3.2 it cannot be stored at the moment; send it again"
#define REPLY_NO_TENANT "550 5.7.1 the report names no mail that was sent from here"

// ---- addresses ----

static bool is_local_part(const MailIntake *intake, Str local)
{
    Str rest = intake->local_parts;
    Str name = STR_EMPTY;
    while (str_split(&rest, ',', &name)) {
        if (str_eq_nocase(str_trim(name), local)) {
            return true;
        }
    }
    return false;
}

static const char *judge_recipient(void *ctx, Str address, Arena *arena, void **ret_user)
{
    MailIntake *intake = ctx;
    if (!intake->ready(intake->ready_ctx)) {
        metric_add(intake->refused, 1);
        return REPLY_LATER;
    }
    ptrdiff_t at = str_find(address, '@');
    Str domain = at < 0 ? STR_EMPTY : str_slice(address, (size_t)at + 1, address.len);
    if (!bounce_domains_has(intake->domains, domain)) {
        metric_add(intake->refused, 1);
        return "550 5.1.2 the domain is not a bounce domain of ours";
    }
    BounceToken token;
    bool has_token = bounce_address_read(address, &token, NULL);
    Str tenant =
        has_token ? bounce_domains_tenant_of(intake->domains, &intake->bounce, &token) : STR_EMPTY;
    if (tenant.len == 0 &&
        (has_token || !is_local_part(intake, str_slice(address, 0, (size_t)at)))) {
        metric_add(intake->refused, 1);
        return "550 5.1.1 the address was not made here";
    }
    *ret_user = tenant.len > 0 ? arena_cstr(arena, tenant) : NULL;
    return NULL;
}

// ---- whose mail it is, where the address does not say ----

// The address "b+...@" that ends at the '@' of that place, with it.
static Str address_before(Str text, size_t at)
{
    const size_t longest = 2 + BOUNCE_TOKEN_LEN + BOUNCE_OWNER_CHARS;
    const size_t shortest = 2 + BOUNCE_TOKEN_LEN;
    for (size_t len = longest; len >= shortest; len -= BOUNCE_OWNER_CHARS) {
        if (at >= len && text.ptr[at - len + 1] == '+') {
            return str_slice(text, at - len, at + 1);
        }
    }
    return STR_EMPTY;
}

static Str tenant_by_return_path(const MailIntake *intake, Str text)
{
    int checked = 0;
    for (size_t at = 0; at < text.len && checked < MAIL_PROOFS_MAX; at++) {
        BounceToken token;
        if (text.ptr[at] == '@' && bounce_address_read(address_before(text, at), &token, NULL)) {
            checked++;
            Str tenant = bounce_domains_tenant_of(intake->domains, &intake->bounce, &token);
            if (tenant.len > 0) {
                return tenant;
            }
        }
    }
    return STR_EMPTY;
}

static bool is_token_char(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '_';
}

static Str tenant_by_opt_out(const MailIntake *intake, Str text, int64_t now_us, Arena *arena)
{
    int checked = 0;
    for (size_t at = 0; at + 4 < text.len && checked < MAIL_PROOFS_MAX; at++) {
        if (text.ptr[at] != 'o' || memcmp(text.ptr + at, "oot_", 4) != 0) {
            continue;
        }
        size_t end = at;
        while (end < text.len && end - at < OPT_OUT_TOKEN_SIZE && is_token_char(text.ptr[end])) {
            end++;
        }
        OptOut found;
        checked++;
        if (opt_out_verify(
                &intake->opt_out, str_slice(text, at, end), now_us, arena, &found, NULL)) {
            return found.tenant;
        }
        at = end;
    }
    return STR_EMPTY;
}

Str mail_intake_tenant_of(const MailIntake *intake, Str text, int64_t now_us, Arena *arena)
{
    Str tenant = tenant_by_return_path(intake, text);
    return tenant.len > 0 ? tenant : tenant_by_opt_out(intake, text, now_us, arena);
}

static Str find_tenant(const MailIntake *intake, const LmtpMail *mail, size_t recipient)
{
    if (mail->users[recipient] != NULL) {
        return str_from(mail->users[recipient]);
    }
    Str tenant = mail_intake_tenant_of(intake, mail->text, mail->received_at_us, mail->arena);
    Str address = mail->recipients[recipient];
    ptrdiff_t at = str_find(address, '@');
    return tenant.len > 0 ? tenant
                          : bounce_domains_sole_tenant(
                                intake->domains, str_slice(address, (size_t)at + 1, address.len));
}

// ---- storing ----

// One recipient of a mail. Lives in the mail's arena.
typedef struct Storing {
    MailIntake *intake;
    const LmtpMail *mail;
    size_t recipient;
} Storing;

static void on_bus_acked(void *ctx, const Error *err, uint64_t sequence, bool duplicate)
{
    (void)sequence;
    (void)duplicate; // the mail server sent it again, which is a success
    Storing *storing = ctx;
    MailIntake *intake = storing->intake;
    intake->waiting--;
    if (err == NULL) {
        CRASH_POINT("lmtp.stored");
    }
    metric_add(err == NULL ? intake->taken : intake->refused, 1);
    lmtp_answer(storing->mail, storing->recipient, err == NULL ? REPLY_STORED : REPLY_LATER);
}

static Str body_of(const LmtpMail *mail, size_t recipient, Arena *arena)
{
    Str head = str_from(arena_printf(
        arena, MAIL_DELIVERED_TO "<" STR_FMT ">\r\n", STR_ARG(mail->recipients[recipient])));
    char *both = arena_alloc(arena, head.len + mail->text.len);
    memcpy(both, head.ptr, head.len);
    memcpy(both + head.len, mail->text.ptr, mail->text.len);
    return (Str){both, head.len + mail->text.len};
}

// The tenant is hashed too, as of every callback.
static void derive_id(Str tenant, Str body, Arena *arena, char ret[EVENT_ID_SIZE])
{
    uint8_t hash[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    sha256(body, hash);
    hex_encode(hash, SHA256_LEN, hex);
    char *discriminator = arena_printf(arena, STR_FMT "/%s", STR_ARG(tenant), hex);
    event_id_derive("inbound", STR(MAIL_VENDOR), str_from(discriminator), ret);
}

static bool pack_mail(
    const Storing *storing, Str tenant, Arena *arena, char id[EVENT_ID_SIZE], Str *ret, Error *err)
{
    static char vendor[] = MAIL_VENDOR;
    const LmtpMail *mail = storing->mail;
    Str body = body_of(mail, storing->recipient, arena);
    derive_id(tenant, body, arena, id);
    MetaSpec head = {
        .event_id = id, .tenant = arena_cstr(arena, tenant), .at_us = mail->received_at_us};
    Stentor__V1__Meta meta = meta_make(&head);
    Stentor__V1__InboundCallback callback;
    stentor__v1__inbound_callback__init(&callback);
    callback.meta = &meta;
    callback.vendor = vendor;
    DataKey *key = data_key_for_tenant(storing->intake->master, tenant);
    callback.body = seal(key, tenant, STR_EMPTY, "body", body, arena);
    data_key_free(key);
    callback.received_at_us = mail->received_at_us;
    return event_pack(&callback.base, arena, ret, err);
}

// Killed after the publish and before the 250: the mail server sends it again, and JetStream
// recognises its id, or the correlation its events.
static void store(MailIntake *intake, const LmtpMail *mail, size_t recipient, Str tenant)
{
    char id[EVENT_ID_SIZE];
    char subject[SUBJECT_SIZE];
    Str payload = STR_EMPTY;
    Error err = {0};
    Storing *storing = arena_zalloc(mail->arena, sizeof *storing);
    *storing = (Storing){.intake = intake, .mail = mail, .recipient = recipient};
    Arena *arena = arena_new(0); // the publish copies; fifty recipients would be too much to keep
    if (pack_mail(storing, tenant, arena, id, &payload, &err)) {
        intake->waiting++;
        subject_inbound(subject, MAIL_VENDOR);
        BusOut out = {.subject = subject, .event_id = str_from(id), .payload = payload};
        bus_publish(intake->bus, &out, on_bus_acked, storing);
    } else {
        LOG(LOG_WARN, "a mail cannot be packed; it is refused", log_str("tenant", tenant),
            log_error(&err));
        metric_add(intake->refused, 1);
        lmtp_answer(mail, recipient, "554 5.6.0 the mail cannot be stored");
    }
    arena_free(arena);
}

static void take_mail(void *ctx, const LmtpMail *mail)
{
    MailIntake *intake = ctx;
    size_t count = mail->count; // the mail is gone with its last answer
    for (size_t i = 0; i < count; i++) {
        bool ready = intake->ready(intake->ready_ctx) && intake->waiting < MAILS_WAITING_MAX;
        Str tenant = ready ? find_tenant(intake, mail, i) : STR_EMPTY;
        if (tenant.len > 0) {
            store(intake, mail, i, tenant);
        } else {
            metric_add(intake->refused, 1);
            lmtp_answer(mail, i, ready ? REPLY_NO_TENANT : REPLY_LATER);
        }
    }
}

LmtpHandler mail_intake_handler(MailIntake *intake)
{
    return (LmtpHandler){.recipient = judge_recipient, .mail = take_mail, .ctx = intake};
}
