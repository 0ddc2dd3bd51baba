// SPDX-License-Identifier: Apache-2.0
// Keys, which headers are signed, and the signature's own header; dkim_canon.c has what is hashed.
#include "common/mime/dkim.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "common/mime/mime_encode.h"

enum {
    SIGNATURE_MAX = DKIM_RSA_BITS_MAX / 8,
    LIST_MAX = 1024,
    HEADER_MAX = 4096,
    B_COLUMNS = 70,
    ED25519_LEN = 32,
};

// clang-format off
// Those that a mail has are signed; `guard`: another one, added on the way, breaks the signature.
static const struct {
    const char *name;
    bool guard;
} SIGNED[] = {
    {"From", true},          {"To", true},           {"Cc", true},
    {"Subject", true},       {"Date", true},         {"Message-ID", true},
    {"Reply-To", true},      {"MIME-Version", true}, {"Content-Type", true},
    {"Content-Transfer-Encoding", false},
    {"List-Unsubscribe", true}, {"List-Unsubscribe-Post", true},
    {"List-Id", false},      {"Feedback-ID", false}, {"CFBL-Address", false},
    {"Auto-Submitted", false},
};
// clang-format on

struct DkimKey {
    EVP_PKEY *pkey;
    DkimAlgorithm algorithm;
};

const char *dkim_algorithm_name(DkimAlgorithm algorithm)
{
    switch (algorithm) {
    case DKIM_RSA_SHA256:
        return "rsa-sha256";
    case DKIM_ED25519_SHA256:
        return "ed25519-sha256";
    case DKIM_NONE:
        break;
    }
    return "";
}

DkimAlgorithm dkim_algorithm_from_name(Str name)
{
    for (DkimAlgorithm a = DKIM_RSA_SHA256; a <= DKIM_ED25519_SHA256; a++) {
        if (str_eq(name, str_from(dkim_algorithm_name(a)))) {
            return a;
        }
    }
    return DKIM_NONE;
}

bool dkim_is_selector(Str text)
{
    char before = '.';
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || ascii_is_digit(c);
        bool inner = before != '.' && before != '-';
        if (!plain && !(c == '-' && before != '.') && !(c == '.' && inner)) {
            return false;
        }
        before = c;
    }
    return text.len > 0 && text.len <= DKIM_SELECTOR_MAX && before != '.' && before != '-';
}

// ---- keys ----

static int no_passphrase(char *space, int size, int writing, void *ctx)
{
    (void)space, (void)size, (void)writing, (void)ctx;
    return -1;
}

static bool check_key(DkimAlgorithm algorithm, EVP_PKEY *pkey, Error *err)
{
    int type = EVP_PKEY_get_base_id(pkey);
    int bits = EVP_PKEY_get_bits(pkey);
    if (algorithm == DKIM_ED25519_SHA256) {
        return type == EVP_PKEY_ED25519 ||
               error_set(err, ERROR_CONFIG, "the DKIM key is not an Ed25519 key");
    }
    if (type != EVP_PKEY_RSA) {
        return error_set(err, ERROR_CONFIG, "the DKIM key is not an RSA key");
    }
    return (bits >= DKIM_RSA_BITS_MIN && bits <= DKIM_RSA_BITS_MAX) ||
           error_set(
               err, ERROR_CONFIG, "the DKIM key has %d bits: expected %d to %d, best 2048", bits,
               (int)DKIM_RSA_BITS_MIN, (int)DKIM_RSA_BITS_MAX);
}

DkimKey *dkim_key_read(DkimAlgorithm algorithm, Str pem, Error *err)
{
    if (algorithm == DKIM_NONE || pem.len > DKIM_KEY_PEM_MAX) {
        error_set(err, ERROR_CONFIG, "the DKIM key is longer than %d bytes", (int)DKIM_KEY_PEM_MAX);
        return NULL;
    }
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    EVP_PKEY *pkey = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    BIO_free(bio);
    if (pkey == NULL) {
        ERR_clear_error();
        error_set(
            err, ERROR_CONFIG, "the DKIM key is not a private key in PEM without a passphrase");
        return NULL;
    }
    if (!check_key(algorithm, pkey, err)) {
        EVP_PKEY_free(pkey);
        return NULL;
    }
    DkimKey *key = xcalloc(1, sizeof *key);
    *key = (DkimKey){pkey, algorithm};
    return key;
}

void dkim_key_free(DkimKey *key)
{
    if (key != NULL) {
        EVP_PKEY_free(key->pkey);
        free(key);
    }
}

bool dkim_key_record(const DkimKey *key, Buf *out)
{
    bool rsa = key->algorithm == DKIM_RSA_SHA256;
    uint8_t raw[ED25519_LEN];
    size_t raw_len = sizeof raw;
    unsigned char *der = NULL;
    int der_len = rsa ? i2d_PUBKEY(key->pkey, &der) : 0;
    bool fine = rsa ? der_len > 0 : EVP_PKEY_get_raw_public_key(key->pkey, raw, &raw_len) == 1;
    if (fine) {
        buf_str(out, rsa ? STR("v=DKIM1; k=rsa; p=") : STR("v=DKIM1; k=ed25519; p="));
        fine = mime_base64(rsa ? str_of(der, (size_t)der_len) : str_of(raw, raw_len), out);
    }
    OPENSSL_free(der);
    return fine;
}

bool dkim_sign_hash(const DkimKey *key, const uint8_t hash[SHA256_LEN], Buf *out, Error *err)
{
    uint8_t signature[SIGNATURE_MAX];
    size_t len = sizeof signature;
    bool fine = false;
    if (key->algorithm == DKIM_ED25519_SHA256) { // PureEdDSA over the hash (RFC 8463, 3)
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        fine = ctx != NULL && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) == 1 &&
               EVP_DigestSign(ctx, signature, &len, hash, SHA256_LEN) == 1;
        EVP_MD_CTX_free(ctx);
    } else {
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key->pkey, NULL);
        fine = ctx != NULL && EVP_PKEY_sign_init(ctx) == 1 &&
               EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1 &&
               EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()) == 1 &&
               EVP_PKEY_sign(ctx, signature, &len, hash, SHA256_LEN) == 1;
        EVP_PKEY_CTX_free(ctx);
    }
    if (!fine) {
        ERR_clear_error();
        return error_set(
            err, ERROR_CONFIG, "the %s key does not sign", dkim_algorithm_name(key->algorithm));
    }
    return mime_base64(str_of(signature, len), out);
}

// ---- the signature's header ----

static size_t count_headers(Str headers, Str name)
{
    size_t count = 0;
    Str line;
    for (Str rest = headers; str_split(&rest, '\n', &line);) {
        ptrdiff_t colon = str_find(line, ':');
        count += colon > 0 && str_eq_nocase(str_slice(line, 0, (size_t)colon), name) ? 1 : 0;
    }
    return count;
}

// "From:From:To:To: ..." in lines.
// RFC 6376, 5.4: a signer chooses; From alone must be among them.
static bool is_left_out(Str name, bool rewritten)
{
    return rewritten && (str_eq(name, STR("Date")) || str_eq(name, STR("Message-ID")));
}

static bool list_headers(Str headers, bool rewritten, Buf *out, Error *err)
{
    buf_clear(out);
    if (count_headers(headers, STR("From")) == 0) {
        return error_set(err, ERROR_PERMANENT, "a mail without From cannot be signed");
    }
    size_t column = 3;
    for (size_t i = 0; i < sizeof SIGNED / sizeof *SIGNED; i++) {
        Str name = str_from(SIGNED[i].name);
        size_t times = count_headers(headers, name) + (SIGNED[i].guard ? 1 : 0);
        times = is_left_out(name, rewritten) ? 0 : times;
        for (; times > 0; times--) {
            buf_str(out, out->len > 0 ? STR(":") : STR_EMPTY);
            column += name.len + 1;
            if (column > MIME_LINE_MAX - 1) {
                buf_str(out, STR("\r\n "));
                column = 1 + name.len + 1;
            }
            buf_str(out, name);
        }
    }
    return !out->full;
}

static void put_folded(Str text, Buf *out)
{
    while (text.len > 0) {
        Str line = str_slice(text, 0, B_COLUMNS);
        buf_str(out, STR("\r\n "));
        buf_str(out, line);
        text = str_slice(text, line.len, text.len);
    }
}

typedef struct Signing {
    Str headers, names;
    const uint8_t *body_hash;
    int64_t at_s;
} Signing;

static bool sign_one(const Signing *signing, const DkimSigner *signer, Buf *out, Error *err)
{
    Buf header;
    Buf value;
    uint8_t hash[SHA256_LEN];
    buf_init(&header, HEADER_MAX);
    buf_init(&value, HEADER_MAX);
    buf_printf(
        &header,
        "DKIM-Signature: v=1; a=%s; c=relaxed/relaxed;\r\n d=" STR_FMT ";\r\n s=" STR_FMT
        "; t=%lld;\r\n h=" STR_FMT ";\r\n bh=",
        dkim_algorithm_name(signer->key->algorithm), STR_ARG(signer->domain),
        STR_ARG(signer->selector), (long long)signing->at_s, STR_ARG(signing->names));
    mime_base64(str_of(signing->body_hash, SHA256_LEN), &header);
    buf_str(&header, STR(";\r\n b="));
    dkim_header_hash(signing->headers, signing->names, buf_view(&header), hash);
    bool fine = !header.full && dkim_sign_hash(signer->key, hash, &value, err);
    if (fine) {
        buf_str(out, buf_view(&header));
        put_folded(buf_view(&value), out);
        buf_str(out, STR("\r\n"));
    }
    buf_done(&header);
    buf_done(&value);
    return fine;
}

// Where the empty line's CRLF CRLF begins; NULL: there is none.
static const char *end_of_headers(Str message)
{
    const char *end = message.ptr + message.len;
    const char *at = message.ptr;
    while (end - at >= 4 && (at = memchr(at, '\r', (size_t)(end - at) - 3)) != NULL) {
        if (memcmp(at, "\r\n\r\n", 4) == 0) {
            return at;
        }
        at++;
    }
    return NULL;
}

bool dkim_sign(
    Str message, const DkimSigner *signers, size_t count, int64_t at_us, Buf *out, Error *err)
{
    const char *end = end_of_headers(message);
    if (end == NULL) {
        return error_set(err, ERROR_PERMANENT, "a mail without an end of its headers");
    }
    size_t split = (size_t)(end - message.ptr) + 2;
    uint8_t body_hash[SHA256_LEN];
    Buf names;
    buf_init(&names, LIST_MAX);
    Signing signing = {
        .headers = str_slice(message, 0, split), .body_hash = body_hash, .at_s = at_us / 1000000};
    dkim_body_hash(str_slice(message, split + 2, message.len), body_hash);
    bool fine = list_headers(signing.headers, false, &names, err);
    for (size_t i = 0; fine && i < count; i++) {
        fine = list_headers(signing.headers, signers[i].rewritten, &names, err);
        signing.names = buf_view(&names);
        fine = fine && sign_one(&signing, &signers[i], out, err);
    }
    buf_done(&names);
    return fine && !out->full;
}
