// SPDX-License-Identifier: Apache-2.0
#include "common/erasure/erasure_certificate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/erasure/certificate_text.h"

static const char *const kinds[] = {
    [CERTIFICATE_ERASURE] = "erasure", [CERTIFICATE_FINAL] = "final"};

// clang-format off
static const char DUE[] =
    "SELECT NOT EXISTS (SELECT FROM erasure.certificates c WHERE c.request = $1 AND c.kind = $2) AND ($2 = 'erasure' OR NOT EXISTS ("
    " SELECT FROM erasure.destroyed_keys x LEFT JOIN keys.epochs e ON e.key_id = substr(x.wrapper, 3, 4) AND substr(x.wrapper, 2, 1) = '\\x02'"
    " WHERE x.request = $1 AND e.destroyed_at IS NULL)"
    " AND NOT EXISTS (SELECT FROM erasure.kept_keys k WHERE k.request = $1 AND k.ended_at IS NULL)"
    " AND NOT EXISTS (SELECT FROM erasure.destroyed_keys x JOIN keys.epochs e ON e.opened_at <= x.destroyed_at" // while keys are wrapped again, a
    " WHERE x.request = $1 AND e.destroyed_at IS NULL))"; // backup may have a copy under the next epoch's
static const char HEAD[] = "SELECT number, sha256 FROM erasure.certificates ORDER BY number DESC LIMIT 1";
static const char ISSUE[] = "SELECT erasure.issue($1::bigint, $2, $3, $4, $5::bytea, nullif($6, '')::bytea)";
static const char LIST[] =
    "SELECT number, request, kind, coalesce(stored_as, ''), body, sha256, signature FROM erasure.certificates ORDER BY number";
// clang-format on

const char *certificate_kind_name(CertificateKind kind)
{
    return kinds[kind];
}

bool certificate_due(
    PGconn *pg, const char *request, CertificateKind kind, bool *ret_due, Error *err)
{
    const char *params[] = {request, kinds[kind]};
    AUTO(PGresult) row = erasure_pg_query(pg, DUE, 2, params, err);
    *ret_due = row != NULL && PQgetvalue(row, 0, 0)[0] == 't';
    return row != NULL;
}

// ---- issuing ----

static bool read_head(PGconn *pg, Arena *arena, CertificateHead *ret, Error *err)
{
    AUTO(PGresult) row = erasure_pg_query(pg, HEAD, 0, NULL, err);
    *ret = (CertificateHead){0};
    if (row != NULL && PQntuples(row) == 1) {
        Str hash = erasure_pg_get_bytes(row, 0, 1, arena);
        ret->number = strtoll(PQgetvalue(row, 0, 0), NULL, 10);
        memcpy(ret->sha256, hash.ptr, hash.len < SHA256_LEN ? hash.len : SHA256_LEN);
    }
    return row != NULL;
}

static const char *hex_of(const void *bytes, size_t len, Arena *arena)
{
    char *hex = arena_alloc(arena, 2 * len + 1);
    hex_encode(bytes, len, hex);
    return hex;
}

static const char *bytea_of(const void *bytes, size_t len, Arena *arena)
{
    return arena_printf(arena, "\\x%s", hex_of(bytes, len, arena));
}

static bool store(
    PGconn *pg, const CertificateSpec *spec, const CertificateHead *before, const char *body,
    const uint8_t *signature, Arena *arena, Error *err)
{
    const char *params[] = {
        arena_printf(arena, "%" PRId64, before->number + 1),
        spec->request->id,
        kinds[spec->kind],
        body,
        bytea_of(signature, ERASURE_SIGNATURE_LEN, arena),
        before->number == 0 ? "" : bytea_of(before->sha256, SHA256_LEN, arena)};
    AUTO(PGresult) done = erasure_pg_query(pg, ISSUE, 6, params, err);
    if (done == NULL) {
        return false;
    }
    return PQgetvalue(done, 0, 0)[0] == 't' ||
           error_set(
               err, ERROR_CONFLICT,
               "another certificate was issued meanwhile (HINT: run the command again)");
}

bool certificate_issue(
    PGconn *pg, const CertificateSpec *spec, const ErasureKey *key, Arena *arena,
    CertificateHead *ret, Error *err)
{
    CertificateHead before;
    CertificateText text = {.spec = spec, .previous = ""};
    uint8_t signature[ERASURE_SIGNATURE_LEN];
    if (!read_head(pg, arena, &before, err)) {
        return false;
    }
    text.number = before.number + 1;
    if (before.number > 0) {
        text.previous = hex_of(before.sha256, SHA256_LEN, arena);
    }
    const char *body = certificate_text(pg, &text, arena, err);
    if (body == NULL || !erasure_sign(key, str_from(body), signature, err) ||
        !store(pg, spec, &before, body, signature, arena, err)) {
        return false;
    }
    CRASH_POINT("erasure.certified");
    ret->number = before.number + 1;
    sha256(str_from(body), ret->sha256);
    return true;
}

// ---- the chain ----

bool certificate_list(
    PGconn *pg, Arena *arena, const Certificate **ret, size_t *ret_count, Error *err)
{
    AUTO(PGresult) rows = erasure_pg_query(pg, LIST, 0, NULL, err);
    if (rows == NULL) {
        return false;
    }
    size_t count = (size_t)PQntuples(rows);
    Certificate *list = arena_array(arena, count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++) {
        int row = (int)i;
        list[i] = (Certificate){
            .number = strtoll(PQgetvalue(rows, row, 0), NULL, 10),
            .request = arena_cstr(arena, str_from(PQgetvalue(rows, row, 1))),
            .kind = arena_cstr(arena, str_from(PQgetvalue(rows, row, 2))),
            .stored_as = arena_cstr(arena, str_from(PQgetvalue(rows, row, 3))),
            .body = arena_str(arena, str_from(PQgetvalue(rows, row, 4))),
            .sha256 = erasure_pg_get_bytes(rows, row, 5, arena),
            .signature = erasure_pg_get_bytes(rows, row, 6, arena)};
    }
    *ret = list;
    *ret_count = count;
    return true;
}

static bool wrong(const Certificate *certificate, const char *what, Error *err)
{
    return error_set(err, ERROR_PERMANENT, "certificate %" PRId64 " %s", certificate->number, what);
}

static bool check_links(const Certificate *certificate, CertificateLinks *ret, Error *err)
{
    uint8_t hash[SHA256_LEN];
    sha256(certificate->body, hash);
    if (certificate->sha256.len != SHA256_LEN ||
        memcmp(hash, certificate->sha256.ptr, SHA256_LEN) != 0) {
        return wrong(certificate, "is not the text of its hash", err);
    }
    return (certificate_links(certificate->body, ret) && ret->number == certificate->number &&
            strcmp(ret->request, certificate->request) == 0) ||
           wrong(certificate, "names another number or request", err);
}

static bool check_follows(
    const Certificate *certificate, const Certificate *before, const CertificateLinks *links,
    Error *err)
{
    uint8_t previous[SHA256_LEN];
    size_t previous_len = 0;
    bool parsed = hex_decode(str_from(links->previous), previous, sizeof previous, &previous_len);
    bool follows = before == NULL
                       ? certificate->number == 1 && previous_len == 0
                       : certificate->number == before->number + 1 && previous_len == SHA256_LEN &&
                             memcmp(previous, before->sha256.ptr, SHA256_LEN) == 0;
    return (parsed && follows) || wrong(certificate, "does not follow from the one before it", err);
}

static bool check_signature(
    const Certificate *certificate, const CertificateLinks *links, const uint8_t *public_key,
    Error *err)
{
    uint8_t named[ERASURE_PUBLIC_LEN];
    size_t named_len = 0;
    bool parsed = hex_decode(str_from(links->public_key), named, sizeof named, &named_len) &&
                  named_len == sizeof named;
    if (!parsed || certificate->signature.len != ERASURE_SIGNATURE_LEN ||
        !erasure_signed(named, certificate->body, (const uint8_t *)certificate->signature.ptr)) {
        return wrong(certificate, "bears a signature that is not of its text", err);
    }
    return public_key == NULL || memcmp(named, public_key, sizeof named) == 0 ||
           wrong(
               certificate, "was signed by another key than that of STENTOR_ERASURE_KEY_FILE", err);
}

bool certificate_check_alone(const Certificate *certificate, const uint8_t *public_key, Error *err)
{
    CertificateLinks links;
    return check_links(certificate, &links, err) &&
           check_signature(certificate, &links, public_key, err);
}

bool certificate_check(
    const Certificate *certificate, const Certificate *before, const uint8_t *public_key,
    Error *err)
{
    CertificateLinks links;
    return check_links(certificate, &links, err) &&
           check_follows(certificate, before, &links, err) &&
           check_signature(certificate, &links, public_key, err);
}
