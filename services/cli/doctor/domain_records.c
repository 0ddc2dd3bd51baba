// SPDX-License-Identifier: Apache-2.0
#include "services/cli/doctor/domain_records.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

enum { RAW_KEY_LEN = 32, KEY_TEXT_MAX = 8192 };

// ---- SPF ----

bool spf_is_record(Str txt)
{
    return str_eq_nocase(txt, STR("v=spf1")) || str_eq_nocase(str_slice(txt, 0, 7), STR("v=spf1 "));
}

static SpfName name_of(Str word)
{
    static const struct {
        const char *word;
        SpfName name;
    } names[] = {
        {"all", SPF_ALL}, {"include", SPF_INCLUDE}, {"a", SPF_A},
        {"mx", SPF_MX},   {"ip4", SPF_IP4},         {"ip6", SPF_IP6},
        {"ptr", SPF_PTR}, {"exists", SPF_EXISTS},   {"redirect", SPF_REDIRECT},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (str_eq_nocase(word, str_from(names[i].word))) {
            return names[i].name;
        }
    }
    return SPF_UNKNOWN;
}

static int read_bits(Str digits, int most)
{
    int64_t bits = -1;
    return str_to_i64(digits, &bits) && bits >= 0 && bits <= most ? (int)bits : most;
}

// "/24", "//64", "/24//64" at the end of the value.
static void take_lengths(SpfTerm *term)
{
    ptrdiff_t slash = str_find(term->value, '/');
    if (slash < 0) {
        return;
    }
    Str rest = str_slice(term->value, (size_t)slash + 1, term->value.len);
    term->value = str_slice(term->value, 0, (size_t)slash);
    if (term->name == SPF_IP6) {
        term->bits6 = read_bits(rest, 128);
        return;
    }
    ptrdiff_t second = str_find(rest, '/');
    Str four = second < 0 ? rest : str_slice(rest, 0, (size_t)second);
    if (four.len > 0) {
        term->bits4 = read_bits(four, 32);
    }
    if (second >= 0) {
        Str six = str_slice(rest, (size_t)second + 1, rest.len);
        six = str_starts(six, STR("/")) ? str_slice(six, 1, six.len) : six;
        term->bits6 = read_bits(six, 128);
    }
}

static size_t end_of_word(Str word, bool *ret_modifier)
{
    size_t end = 0;
    while (end < word.len && word.ptr[end] != ':' && word.ptr[end] != '=' && word.ptr[end] != '/') {
        end++;
    }
    *ret_modifier = end < word.len && word.ptr[end] == '=';
    return end;
}

bool spf_next(Str *rest, SpfTerm *ret)
{
    *rest = str_trim(*rest);
    if (rest->len == 0) {
        return false;
    }
    ptrdiff_t blank = str_find(*rest, ' ');
    Str word = blank < 0 ? *rest : str_slice(*rest, 0, (size_t)blank);
    *rest = blank < 0 ? STR_EMPTY : str_slice(*rest, (size_t)blank, rest->len);
    *ret = (SpfTerm){.qualifier = '+', .bits4 = 32, .bits6 = 128};
    if (strchr("+-~?", word.ptr[0]) != NULL) {
        ret->qualifier = word.ptr[0];
        word = str_slice(word, 1, word.len);
    }
    bool modifier = false;
    size_t end = end_of_word(word, &modifier);
    ret->name = name_of(str_slice(word, 0, end));
    if (modifier && ret->name != SPF_REDIRECT) {
        ret->name = SPF_OTHER;
    }
    bool has_value = end < word.len && word.ptr[end] != '/';
    ret->value = str_slice(word, has_value ? end + 1 : end, word.len);
    take_lengths(ret);
    return true;
}

bool spf_asks_dns(SpfName name)
{
    return name == SPF_INCLUDE || name == SPF_A || name == SPF_MX || name == SPF_PTR ||
           name == SPF_EXISTS || name == SPF_REDIRECT;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, int bits)
{
    size_t whole = (size_t)bits / 8;
    unsigned left = (unsigned)bits % 8;
    uint8_t mask = (uint8_t)(0xff << (8 - left));
    return memcmp(a, b, whole) == 0 && (left == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

bool spf_network_has(Str network, int bits4, int bits6, const char *address)
{
    char text[INET6_ADDRSTRLEN];
    uint8_t net[16];
    uint8_t ip[16];
    if (!str_to_c(network, text, sizeof text)) {
        return false;
    }
    if (inet_pton(AF_INET, address, ip) == 1) {
        return inet_pton(AF_INET, text, net) == 1 && same_bits(net, ip, bits4);
    }
    return inet_pton(AF_INET6, address, ip) == 1 && inet_pton(AF_INET6, text, net) == 1 &&
           same_bits(net, ip, bits6);
}

// ---- tags ----

bool tag_value(Str record, const char *name, Str *ret)
{
    Str rest = record;
    *ret = STR_EMPTY;
    while (rest.len > 0) {
        ptrdiff_t end = str_find(rest, ';');
        Str tag = end < 0 ? rest : str_slice(rest, 0, (size_t)end);
        rest = end < 0 ? STR_EMPTY : str_slice(rest, (size_t)end + 1, rest.len);
        ptrdiff_t equals = str_find(tag, '=');
        if (equals >= 0 && str_eq(str_trim(str_slice(tag, 0, (size_t)equals)), str_from(name))) {
            *ret = str_trim(str_slice(tag, (size_t)equals + 1, tag.len));
            return true;
        }
    }
    return false;
}

Str tag_squeeze(Str value, Arena *arena)
{
    char *out = arena_alloc(arena, value.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] > ' ') {
            out[len++] = value.ptr[i];
        }
    }
    return str_of(out, len);
}

// ---- DKIM ----

// 0: it is no RSA key.
static int rsa_bits(Str base64, Arena *arena)
{
    uint8_t *der = arena_alloc(arena, base64.len + 4);
    int len = base64.len % 4 == 0 && base64.len > 0 && base64.len <= KEY_TEXT_MAX
                  ? EVP_DecodeBlock(der, (const unsigned char *)base64.ptr, (int)base64.len)
                  : -1;
    const unsigned char *at = der;
    EVP_PKEY *key = len > 0 ? d2i_PUBKEY(NULL, &at, len) : NULL;
    int bits =
        key != NULL && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? EVP_PKEY_get_bits(key) : 0;
    EVP_PKEY_free(key);
    return bits;
}

bool dkim_record_read(Str txt, Arena *arena, DkimRecord *ret, Error *err)
{
    Str value;
    *ret = (DkimRecord){.key = STR_EMPTY};
    if (tag_value(txt, "v", &value) && !str_eq(value, STR("DKIM1"))) {
        return error_set(err, ERROR_PERMANENT, "its v= is not DKIM1");
    }
    if (!tag_value(txt, "p", &value)) {
        return error_set(err, ERROR_PERMANENT, "it has no p=, which is the public key");
    }
    ret->key = tag_squeeze(value, arena);
    ret->testing = tag_value(txt, "t", &value) && str_find(value, 'y') >= 0;
    ret->ed25519 = tag_value(txt, "k", &value) && str_eq(value, STR("ed25519"));
    if (ret->key.len == 0) {
        return error_set(err, ERROR_PERMANENT, "its p= is empty: the key is revoked");
    }
    ret->bits = ret->ed25519 ? 0 : rsa_bits(ret->key, arena);
    if (!ret->ed25519 && ret->bits == 0) {
        return error_set(err, ERROR_PERMANENT, "its p= is no RSA key in base64");
    }
    return true;
}

static Str encode(const uint8_t *bytes, int len, Arena *arena)
{
    char *out = arena_alloc(arena, (size_t)len * 4 / 3 + 8);
    int written = EVP_EncodeBlock((unsigned char *)out, bytes, len);
    return str_of(out, (size_t)written);
}

bool dkim_public_of(Str pem, Arena *arena, Str *ret, Error *err)
{
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    uint8_t raw[RAW_KEY_LEN];
    size_t raw_len = sizeof raw;
    unsigned char *der = NULL;
    bool ok = false;
    if (key != NULL && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519) {
        ok = EVP_PKEY_get_raw_public_key(key, raw, &raw_len) == 1;
        *ret = ok ? encode(raw, (int)raw_len, arena) : STR_EMPTY;
    } else if (key != NULL && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA) {
        int len = i2d_PUBKEY(key, &der);
        ok = len > 0;
        *ret = ok ? encode(der, len, arena) : STR_EMPTY;
        OPENSSL_free(der);
    }
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok || error_set(err, ERROR_PERMANENT, "no RSA or Ed25519 private key in PEM");
}

// ---- names ----

Str domain_parent(Str domain)
{
    ptrdiff_t dot = str_find(domain, '.');
    Str parent = dot < 0 ? STR_EMPTY : str_slice(domain, (size_t)dot + 1, domain.len);
    return str_find(parent, '.') < 0 ? STR_EMPTY : parent;
}
