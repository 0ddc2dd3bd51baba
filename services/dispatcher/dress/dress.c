// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/dress/dress.h"

#include <string.h>

#include "common/model/enums.h"
#include "common/model/sender_domain.h"
#include "common/request/template_test.h"

enum { SIGNATURES_MAX = 16384 };

// "a.example" of "a.example" and "x.a.example".
static bool is_within(Str domain, Str parent)
{
    if (str_eq_nocase(domain, parent)) {
        return true;
    }
    size_t before = domain.len > parent.len ? domain.len - parent.len : 0;
    return before > 0 && domain.ptr[before - 1] == '.' &&
           str_eq_nocase(str_slice(domain, before, domain.len), parent);
}

static bool make_return_path(const DressWant *want, Dress *dress, Error *err)
{
    const Stentor__V1__Meta *meta = want->rendered->meta;
    Str bounces = dress->domain != NULL ? send_domain_bounces(dress->domain) : STR_EMPTY;
    char token[BOUNCE_TOKEN_LEN + 1];
    if (!bounce_token_make(
            &want->rules->bounce_key, str_from(meta->tenant), str_from(meta->notification_id),
            (int32_t)want->rendered->attempt, token, err)) {
        return false;
    }
    dress->token = arena_str(want->arena, str_from(token));
    dress->return_path = STR_EMPTY;
    if (bounces.len == 0) {
        return true;
    }
    // With the mark of the address, so that a bounce may suppress it and no other one.
    const ProtobufCBinaryData *hash = &want->rendered->address_hash;
    const Str tenant = str_from(meta->tenant), id = str_from(meta->notification_id);
    int32_t attempt = (int32_t)want->rendered->attempt;
    char address[BOUNCE_ADDRESS_SIZE];
    bool made =
        hash->len == ADDRESS_HASH_LEN
            ? bounce_address_make_for(
                  &want->rules->bounce_key, tenant, id, attempt, hash->data, bounces, address, err)
            : bounce_address_make(
                  &want->rules->bounce_key, tenant, id, attempt, bounces, address, err);
    dress->return_path = made ? arena_str(want->arena, str_from(address)) : STR_EMPTY;
    return made;
}

// Gmail counts complaints under each of the four (its last one is required and must be signed).
static Str make_feedback_id(const DressWant *want)
{
    const Stentor__V1__Rendered *rendered = want->rendered;
    return str_from(arena_printf(
        want->arena, "%s:%s:%s:" STR_FMT,
        rendered->batch_id[0] != '\0' ? rendered->batch_id : rendered->template_,
        category_name((Category)rendered->category), rendered->meta->tenant,
        STR_ARG(want->rules->feedback_sender)));
}

// The caller's; else, of what goes to many, the template under the sender's domain: the same for
// each of its mails, so that a mailbox can sort by it.
static Str make_list_id(const DressWant *want)
{
    const Stentor__V1__Rendered *rendered = want->rendered;
    if (want->list_id.len > 0) {
        return arena_str(want->arena, want->list_id);
    }
    bool many = rendered->batch_id[0] != '\0' || (Category)rendered->category == CATEGORY_MARKETING;
    return many ? str_from(arena_printf(
                      want->arena, "%s." STR_FMT, rendered->template_,
                      STR_ARG(sender_domain_of(want->from))))
                : STR_EMPTY;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           memchr("_-.+/", c, 5) != NULL;
}

// What the correlation id of a test says, which whoever asks for a notification may choose.
static Str make_test(const DressWant *want)
{
    Str prefix = STR(TEMPLATE_TEST_CORRELATION);
    Str id = str_from(want->rendered->meta->correlation_id);
    bool is_test = str_starts(id, prefix);
    for (size_t i = prefix.len; is_test && i < id.len; i++) {
        is_test = is_plain(id.ptr[i]);
    }
    return is_test ? str_slice(id, prefix.len, id.len) : STR_EMPTY;
}

bool dress_make(const DressWant *want, Dress *ret, Error *err)
{
    *ret = (Dress){
        .domain =
            send_domains_find(want->domains, str_from(want->rendered->meta->tenant), want->from),
        .feedback_id = make_feedback_id(want),
        .list_id = make_list_id(want),
        .cfbl_address = STR_EMPTY,
        .test = make_test(want),
    };
    if (!make_return_path(want, ret, err)) {
        return false;
    }
    if (ret->domain == NULL) {
        return true;
    }
    if (!send_domain_signers(ret->domain, ret->signers, &ret->signer_count, err)) {
        return false;
    }
    // RFC 9477, 3.1: a domain other than the From's would need a signature of its own.
    if (ret->signer_count > 0 && ret->return_path.len > 0 &&
        is_within(send_domain_bounces(ret->domain), sender_domain_of(want->from))) {
        ret->cfbl_address = ret->return_path;
    }
    return true;
}

void dress_put_on(const Dress *dress, MimeMail *mime)
{
    mime->feedback_id = dress->feedback_id;
    mime->list_id = dress->list_id;
    mime->cfbl_address = dress->cfbl_address;
    mime->test = dress->test;
}

bool dress_sign(const Dress *dress, Str message, int64_t at_us, Arena *arena, Str *ret, Error *err)
{
    Buf signatures;
    buf_init(&signatures, SIGNATURES_MAX);
    bool fine = dress->signer_count == 0 ||
                dkim_sign(message, dress->signers, dress->signer_count, at_us, &signatures, err);
    if (fine) {
        char *whole = arena_alloc(arena, signatures.len + message.len);
        if (signatures.len > 0) {
            memcpy(whole, signatures.ptr, signatures.len);
        }
        memcpy(whole + signatures.len, message.ptr, message.len);
        *ret = str_of(whole, signatures.len + message.len);
    }
    buf_done(&signatures);
    return fine;
}
