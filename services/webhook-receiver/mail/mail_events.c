// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/mail/mail_events.h"

#include <string.h>

#include "common/base/log.h"
#include "common/model/rules/ladder.h"

enum { ENHANCED_MAX = 11, MARK_HEX = 16 };

typedef struct Evidence {
    Str notification_id; // empty: the mail names none of ours
    int32_t attempt;     // 0: not known
    bool proven;
    BounceToken token;
    bool has_token;
    OptOut opt_out; // its address hash is the notification's
    bool has_opt_out;
} Evidence;

typedef struct Reading {
    const MailOrigin *origin;
    const MailKeys *keys;
    Arena *arena;
    Evidence evidence;
    CallbackBatch *batch;
} Reading;

// ---- whose it is ----

// The address or the token by itself, as an envelope id may be.
static bool find_token(Reading *reading, Str text)
{
    Evidence *evidence = &reading->evidence;
    BounceToken token;
    text = str_trim(text);
    if ((bounce_address_read(text, &token, NULL) || bounce_token_read(text, &token)) &&
        bounce_token_check(&reading->keys->bounce, &token, reading->origin->tenant)) {
        evidence->token = token;
        evidence->has_token = true;
        evidence->notification_id =
            arena_str(reading->arena, str_from(evidence->token.notification_id));
        evidence->attempt = token.attempt;
        return true;
    }
    return false;
}

static bool is_token_char(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '_';
}

// The first one in a List-Unsubscribe that was made here.
static void find_opt_out(Reading *reading, Str text)
{
    Evidence *evidence = &reading->evidence;
    for (size_t at = 0; at + 4 < text.len; at++) {
        Str rest = str_slice(text, at, text.len);
        if (!str_starts(rest, STR("oot_"))) {
            continue;
        }
        size_t len = 0;
        while (len < rest.len && is_token_char(rest.ptr[len])) {
            len++;
        }
        OptOut found;
        bool good = opt_out_verify(
            &reading->keys->opt_out, str_slice(rest, 0, len), reading->origin->received_at_us,
            reading->arena, &found, NULL);
        bool own =
            good && str_eq(found.tenant, reading->origin->tenant) &&
            found.channel == CHANNEL_EMAIL &&
            (!evidence->has_token || str_eq(found.notification_id, evidence->notification_id));
        if (own) {
            evidence->opt_out = found;
            evidence->has_opt_out = true;
            evidence->notification_id = found.notification_id;
            return;
        }
    }
}

// "<ntf_...@host>", "ntf_...": an id of ours at the beginning, or none.
static Str notification_of(Str text)
{
    enum { NOTIFICATION_LEN = 4 + ULID_LEN };
    text = str_trim(text);
    text = str_starts(text, STR("<")) ? str_slice(text, 1, text.len) : text;
    Str id = str_slice(text, 0, NOTIFICATION_LEN);
    bool ends = text.len == id.len || !ascii_is_alnum(text.ptr[id.len]);
    return ends && id_parse(id, "ntf_", NULL) ? id : STR_EMPTY;
}

static void find_evidence(Reading *reading, const MailReport *report)
{
    Evidence *evidence = &reading->evidence;
    Str envelope = report->envelope_id.len > 0 ? report->envelope_id : report->feedback_envelope_id;
    (void)(find_token(reading, reading->origin->delivered_to) || find_token(reading, envelope) ||
           find_token(reading, report->feedback_from) || find_token(reading, report->return_path));
    find_opt_out(reading, report->list_unsubscribe);
    evidence->proven = evidence->has_token || evidence->has_opt_out;
    if (!evidence->proven) {
        Str claimed = notification_of(envelope);
        evidence->notification_id = claimed.len > 0 ? claimed : notification_of(report->message_id);
    }
}

// ---- whose address ----

// The address in "rfc822; <a@b>", "Ada <a@b>" or "a@b"; empty: there is none.
static Str address_of(Str text)
{
    ptrdiff_t at = str_find(text, ';');
    text = at >= 0 ? str_slice(text, (size_t)at + 1, text.len) : text;
    at = str_find(text, '<');
    text = at >= 0 ? str_slice(text, (size_t)at + 1, text.len) : text;
    at = str_find(text, '>');
    text = str_trim(at >= 0 ? str_slice(text, 0, (size_t)at) : text);
    at = str_find(text, '@');
    bool good = at > 0 && (size_t)at + 1 < text.len && text.len <= 254 && !str_has_control(text) &&
                str_find(text, ' ') < 0;
    return good ? text : STR_EMPTY;
}

typedef enum Whose { WHOSE_UNKNOWN, WHOSE_OWN, WHOSE_OTHER } Whose;

static void hash_with(
    const Reading *reading, size_t key, Str address, uint8_t ret[ADDRESS_HASH_LEN])
{
    address_hash(
        reading->keys->hash.keys[key], reading->origin->tenant, CHANNEL_EMAIL, address, ret);
}

static Whose whose_address(const Reading *reading, Str address)
{
    const Evidence *evidence = &reading->evidence;
    bool known = evidence->has_opt_out || (evidence->has_token && evidence->token.has_owner);
    if (address.len == 0 || !known) {
        return WHOSE_UNKNOWN;
    }
    for (size_t i = 0; i < reading->keys->hash.count; i++) {
        uint8_t hash[ADDRESS_HASH_LEN];
        hash_with(reading, i, address, hash);
        bool own = (evidence->has_opt_out &&
                    memcmp(hash, evidence->opt_out.address_hash, sizeof hash) == 0) ||
                   (evidence->has_token && bounce_token_is_owner(&evidence->token, hash));
        if (own) {
            return WHOSE_OWN;
        }
    }
    return WHOSE_OTHER;
}

// ---- events ----

// Without the address in it, and the same for a repeat.
static Str make_id(const Reading *reading, const char *what, Str address)
{
    uint8_t hash[ADDRESS_HASH_LEN];
    char hex[2 * sizeof hash + 1];
    hash_with(reading, 0, address, hash);
    hex_encode(hash, sizeof hash, hex);
    hex[MARK_HEX] = '\0';
    return str_from(arena_printf(
        reading->arena, "mail/" STR_FMT "/%d/%s/%s", STR_ARG(reading->evidence.notification_id),
        reading->evidence.attempt, what, hex));
}

static CallbackEvent *add_event(Reading *reading, const char *what, Str address)
{
    CallbackEvent *event = &reading->batch->events[reading->batch->count++];
    *event = (CallbackEvent){
        .notification_id = reading->evidence.notification_id,
        .attempt = reading->evidence.attempt,
        .id = make_id(reading, what, address),
        .reason_code = "",
    };
    return event;
}

// "5.1.1" at the beginning of the text; empty: it has none.
static Str enhanced_at(Str text)
{
    size_t at = 0;
    for (int part = 0; part < 3; part++) {
        size_t digits = 0;
        while (at < text.len && ascii_is_digit(text.ptr[at]) && digits < 3) {
            at++;
            digits++;
        }
        bool dot = part < 2 && at < text.len && text.ptr[at] == '.';
        if (digits == 0 || (part < 2 && !dot)) {
            return STR_EMPTY;
        }
        at += dot ? 1 : 0;
    }
    bool ends = at == text.len || !(ascii_is_alnum(text.ptr[at]) || text.ptr[at] == '.');
    bool good = ends && at <= ENHANCED_MAX && text.ptr[1] == '.' &&
                (text.ptr[0] == '2' || text.ptr[0] == '4' || text.ptr[0] == '5');
    return good ? str_slice(text, 0, at) : STR_EMPTY;
}

// The first in the text that follows a space or stands at the beginning.
static Str enhanced_in(Str text)
{
    for (size_t at = 0; at < text.len; at++) {
        bool starts = at == 0 || text.ptr[at - 1] == ' ' || text.ptr[at - 1] == '-' ||
                      text.ptr[at - 1] == '#';
        Str found = starts ? enhanced_at(str_slice(text, at, text.len)) : STR_EMPTY;
        if (found.len > 0) {
            return found;
        }
    }
    return STR_EMPTY;
}

// What the server on the other side said is more exact than "5.0.0", which some mail servers write
// for everything.
static Str enhanced_of(const ReportedRecipient *at)
{
    Str status = enhanced_at(at->status);
    Str said = enhanced_in(at->diagnostic);
    bool general = status.len == 0 || str_ends(status, STR(".0.0"));
    bool fits = said.len > 0 && (status.len == 0 || said.ptr[0] == status.ptr[0]);
    return general && fits ? said : status;
}

static Str cut_text(Str text, size_t max)
{
    if (text.len <= max) {
        return text;
    }
    while (max > 0 && ((unsigned char)text.ptr[max] & 0xc0) == 0x80) {
        max--;
    }
    return str_slice(text, 0, max);
}

// Masking may lengthen the text: cut before and after.
static Str words_of(Str text, Arena *arena)
{
    char *masked = arena_alloc(arena, 2 * CALLBACK_TEXT_MAX + 1);
    mask_addresses(cut_text(text, CALLBACK_TEXT_MAX), masked, 2 * CALLBACK_TEXT_MAX + 1);
    for (char *c = masked; *c != '\0'; c++) {
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? ' ' : *c;
    }
    return cut_text(str_from(masked), CALLBACK_TEXT_MAX);
}

// 4.x.x with `failed`: the queue gave up. It ends the notification, and says nothing lasting of the
// address.
static void read_failure(CallbackEvent *event, Str enhanced)
{
    bool permanent = enhanced.len == 0 || enhanced.ptr[0] != '4';
    if (permanent && reply_classify(550, enhanced) == REPLY_BAD_ADDRESS) {
        bool gone = str_eq(enhanced, STR("5.1.1")) || str_eq(enhanced, STR("5.1.6"));
        event->status = STATUS_BOUNCED;
        event->outcome = OUTCOME_BOUNCE;
        event->reason_code = "hard_bounce";
        event->suppress = gone ? SUPPRESSION_HARD_BOUNCE : SUPPRESSION_INVALID_ADDRESS;
    } else if (str_starts(enhanced, STR("5.7."))) {
        event->status = STATUS_FAILED;
        event->outcome = OUTCOME_FAILED;
        event->reason_code = "blocked";
    } else {
        event->status = STATUS_BOUNCED;
        event->outcome = OUTCOME_BOUNCE;
        event->reason_code = "soft_bounce";
    }
}

// ---- a bounce ----

static bool is_action(Str action, const char *name)
{
    Str word = STR_EMPTY;
    return str_split(&action, ' ', &word) && str_eq_nocase(str_trim(word), str_from(name));
}

static void read_recipient(Reading *reading, const ReportedRecipient *at)
{
    bool failed = is_action(at->action, "failed");
    bool delivered = is_action(at->action, "delivered");
    Str original = address_of(at->original);
    Str final = address_of(at->final);
    Whose whose = whose_address(reading, original);
    bool by_final = whose != WHOSE_OWN && final.len > 0;
    whose = by_final ? whose_address(reading, final) : whose;
    bool ours = reading->evidence.notification_id.len > 0;
    if (!ours || (!failed && !delivered) || whose == WHOSE_OTHER) {
        reading->batch->ignored++;
        return;
    }
    Str address = by_final ? final : original;
    CallbackEvent *event = add_event(reading, failed ? "failed" : "delivered", address);
    event->enhanced_code = enhanced_of(at);
    event->text = words_of(at->diagnostic, reading->arena);
    if (delivered) {
        event->status = STATUS_DELIVERED;
        event->outcome = OUTCOME_DELIVERED;
        return;
    }
    read_failure(event, event->enhanced_code);
    if (whose == WHOSE_OWN) {
        event->email = address;
    } else {
        event->suppress = SUPPRESSION_NONE;
    }
}

// ---- a complaint ----

// The notification's own address among those that the report names; empty: none is.
static Str find_own(const Reading *reading, const MailReport *report)
{
    for (size_t i = 0; i < report->feedback_recipient_count; i++) {
        Str address = address_of(report->feedback_recipients[i]);
        if (whose_address(reading, address) == WHOSE_OWN) {
            return address;
        }
    }
    Str to = address_of(report->to);
    return whose_address(reading, to) == WHOSE_OWN ? to : STR_EMPTY;
}

static void read_complaint(Reading *reading, const MailReport *report)
{
    bool ours = reading->evidence.notification_id.len > 0;
    if (!ours || !str_eq_nocase(report->feedback_type, STR("abuse"))) {
        reading->batch->ignored++; // not-spam, fraud, auth-failure ...
        return;
    }
    CallbackEvent *event = add_event(reading, "complaint", STR_EMPTY);
    event->status = STATUS_COMPLAINED;
    event->outcome = OUTCOME_COMPLAINT;
    event->reason_code = "complaint";
    event->email = find_own(reading, report);
    if (event->email.len == 0 && reading->evidence.has_opt_out) { // the report leaves it out
        event->address_hash =
            arena_copy(reading->arena, reading->evidence.opt_out.address_hash, ADDRESS_HASH_LEN);
    }
    bool known = event->email.len > 0 || event->address_hash != NULL;
    event->suppress = known ? SUPPRESSION_COMPLAINT : SUPPRESSION_NONE;
}

void mail_events(
    const MailReport *report, const MailOrigin *origin, const MailKeys *keys, Arena *arena,
    CallbackBatch *ret)
{
    Reading reading = {.origin = origin, .keys = keys, .arena = arena, .batch = ret};
    *ret = (CallbackBatch){
        .events = arena_array(arena, report->recipient_count + 1, sizeof *ret->events)};
    find_evidence(&reading, report);
    for (size_t i = 0; i < report->recipient_count; i++) {
        read_recipient(&reading, &report->recipients[i]);
    }
    if (report->is_feedback) {
        read_complaint(&reading, report);
    }
    if (!report->is_delivery && !report->is_feedback) {
        ret->unreadable++;
    }
}
