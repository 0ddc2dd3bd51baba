// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/ses/sns.h"

#include <stdio.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/vendor/callback_proof.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/ses/sns_internal.h"

enum {
    URL_MAX = 2048,
    PEM_MAX = 16384,
    SIGNATURE_MAX = 1024,
    REGION_MAX = 32,
    SIGNED_MAX = 1 << 20
};

#define HOST_START STR("https://sns.")

// ---- the envelope ----

bool sns_read(Str body, Arena *arena, SnsMessage *ret, Error *err)
{
    const json_t *root = callback_json(body, arena, err);
    if (root == NULL) {
        return false;
    }
    *ret = (SnsMessage){
        .type = callback_id(root, "Type"),
        .id = callback_id(root, "MessageId"),
        .topic = callback_id(root, "TopicArn"),
        .message = callback_text(root, "Message"),
        .subject = callback_text(root, "Subject"),
        .has_subject = json_is_string(json_object_get(root, "Subject")),
        .timestamp = callback_id(root, "Timestamp"),
        .token = callback_text(root, "Token"),
        .subscribe_url = callback_text(root, "SubscribeURL"),
        .version = callback_id(root, "SignatureVersion"),
        .signature = callback_text(root, "Signature"),
        .certificate_url = callback_text(root, "SigningCertURL"),
    };
    const char *missing = ret->type.len == 0    ? "Type"
                          : ret->id.len == 0    ? "MessageId"
                          : ret->topic.len == 0 ? "TopicArn"
                                                : NULL;
    return missing == NULL ||
           error_set(err, ERROR_PERMANENT, "the message of SNS has no '%s'", missing);
}

// ---- what is pinned ----

static bool is_region(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!ascii_is_alnum(text.ptr[i]) && text.ptr[i] != '-') {
            return false;
        }
    }
    return text.len >= 3 && text.len <= REGION_MAX;
}

// The region of a topic; empty: it is none.
static Str topic_region(Str topic)
{
    Str rest = topic, part[6] = {{0}};
    for (int i = 0; i < 6; i++) {
        if (!str_split(&rest, ':', &part[i])) {
            return STR_EMPTY;
        }
    }
    bool good = str_eq(part[0], STR("arn")) && str_starts(part[1], STR("aws")) &&
                str_eq(part[2], STR("sns")) && is_region(part[3]) && part[4].len > 0 &&
                part[5].len > 0 && topic.len <= 300;
    return good ? part[3] : STR_EMPTY;
}

bool sns_is_topic(Str text)
{
    return topic_region(text).len > 0 && !str_has_control(text);
}

bool sns_is_pinned(Str url, Str topic)
{
    Str region = topic_region(topic);
    if (region.len == 0 || url.len > URL_MAX || !str_starts(url, HOST_START) ||
        str_has_control(url) || str_find(url, ' ') >= 0 || str_find(url, '#') >= 0) {
        return false;
    }
    Str rest = str_slice(url, HOST_START.len, url.len);
    if (!str_starts(rest, region)) {
        return false;
    }
    rest = str_slice(rest, region.len, rest.len);
    return str_starts(rest, STR(".amazonaws.com/")) || str_starts(rest, STR(".amazonaws.com.cn/"));
}

bool sns_is_certificate_url(Str url, Str topic)
{
    return sns_is_pinned(url, topic) && str_ends(url, STR(".pem")) && str_find(url, '?') < 0;
}

// ---- the certificate ----

static X509 *open_certificate(Str pem)
{
    Str start = STR("-----BEGIN CERTIFICATE-----");
    pem = str_trim(pem);
    if (pem.len > PEM_MAX || !str_starts(pem, start)) {
        return NULL;
    }
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    X509 *certificate = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    bool alone = bio != NULL && BIO_pending(bio) == 0;
    BIO_free(bio);
    if (!alone) {
        X509_free(certificate);
        return NULL;
    }
    return certificate;
}

bool sns_check_certificate(Str pem, Error *err)
{
    X509 *certificate = open_certificate(pem);
    EVP_PKEY *key = certificate != NULL ? X509_get0_pubkey(certificate) : NULL;
    bool good = key != NULL && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
    X509_free(certificate);
    return good || error_set(
                       err, ERROR_PERMANENT,
                       "a key is the certificate of SNS as one PEM block, with an RSA key");
}

static bool is_in_force(const X509 *certificate, int64_t at_us)
{
    time_t at = (time_t)(at_us / 1000000);
    return X509_cmp_time(X509_get0_notBefore(certificate), &at) < 0 &&
           X509_cmp_time(X509_get0_notAfter(certificate), &at) > 0;
}

// ---- the signature ----

static void add(Buf *out, const char *name, Str value)
{
    buf_cstr(out, name);
    buf_cstr(out, "\n");
    buf_str(out, value);
    buf_cstr(out, "\n");
}

static void write_signed(Buf *out, const SnsMessage *m)
{
    bool notification = str_eq(m->type, STR("Notification"));
    add(out, "Message", m->message);
    add(out, "MessageId", m->id);
    if (notification && m->has_subject) {
        add(out, "Subject", m->subject);
    }
    if (!notification) {
        add(out, "SubscribeURL", m->subscribe_url);
    }
    add(out, "Timestamp", m->timestamp);
    if (!notification) {
        add(out, "Token", m->token);
    }
    add(out, "TopicArn", m->topic);
    add(out, "Type", m->type);
}

static bool fits(Str pem, const EVP_MD *digest, Str text, Str signature, int64_t now_us)
{
    X509 *certificate = open_certificate(pem);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    EVP_PKEY *key = certificate != NULL ? X509_get0_pubkey(certificate) : NULL;
    bool good = ctx != NULL && key != NULL && is_in_force(certificate, now_us) &&
                EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA &&
                EVP_DigestVerifyInit(ctx, NULL, digest, NULL, key) == 1 &&
                EVP_DigestVerify(
                    ctx, (const unsigned char *)signature.ptr, signature.len,
                    (const unsigned char *)text.ptr, text.len) == 1;
    EVP_MD_CTX_free(ctx);
    X509_free(certificate);
    return good;
}

static CallbackVerdict check_age(const CallbackRequest *request, Str timestamp)
{
    int64_t at_us = 0;
    if (!clock_parse(timestamp, &at_us)) {
        return CALLBACK_UNSIGNED;
    }
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)(at_us / 1000000));
    return callback_age(request, str_of(digits, (size_t)len), SNS_REPEATS_S);
}

static CallbackVerdict judge(
    const CallbackRequest *request, const SnsMessage *message, const CallbackKey *keys,
    size_t key_count, size_t *ret_key)
{
    uint8_t signature[SIGNATURE_MAX];
    size_t len = 0;
    bool first = str_eq(message->version, STR("1"));
    if ((!first && !str_eq(message->version, STR("2"))) ||
        !base64_decode(message->signature, signature, sizeof signature, &len)) {
        return CALLBACK_UNSIGNED;
    }
    CallbackVerdict verdict = check_age(request, message->timestamp);
    if (verdict != CALLBACK_GOOD) {
        return verdict;
    }
    Buf text;
    buf_init(&text, SIGNED_MAX);
    write_signed(&text, message);
    verdict = CALLBACK_BAD;
    for (size_t i = 0; i < key_count && verdict == CALLBACK_BAD; i++) {
        if (fits(
                keys[i].secret, first ? EVP_sha1() : EVP_sha256(), buf_view(&text),
                str_of(signature, len), request->received_at_us)) {
            verdict = CALLBACK_GOOD;
            *ret_key = i;
        }
    }
    buf_done(&text);
    return verdict;
}

bool sns_verify(
    const CallbackRequest *request, const CallbackKey *keys, size_t key_count, CallbackVerdict *ret,
    size_t *ret_key)
{
    Arena *arena = arena_new(0);
    SnsMessage message;
    *ret = sns_read(request->body, arena, &message, NULL)
               ? judge(request, &message, keys, key_count, ret_key)
               : CALLBACK_UNSIGNED;
    arena_free(arena);
    return *ret == CALLBACK_GOOD;
}
