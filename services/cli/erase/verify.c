// SPDX-License-Identifier: Apache-2.0
// erase verify: what an erasure left is looked at again, the chain of certificates is checked, and
// the certificate that is due is issued.
#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/erasure/erasure_certificate.h"
#include "services/cli/erase/certificates.h"
#include "services/cli/erase/erase.h"
#include "services/cli/operate/archived_log.h"

typedef struct Verify {
    Cli *cli;
    EraseLinks links;
    ErasureKey *key; // NULL: none is set
    ErasureRequest request;
    ErasureScan scan;
    uint64_t sealed, readable, in_clear, expected_clear;
    const Certificate *chain;
    size_t chain_count;
    const char *broken; // NULL: the chain is whole
    const char *issued; // "erasure 7, final 8"
} Verify;

// ---- looking ----

static size_t texts_of(Cli *cli, Str *out)
{
    size_t count = 0;
    const char *text = NULL;
    for (int i = 0; (text = args_each(&cli->args, "text", &i)) != NULL;) {
        out[count++] = str_from(text);
    }
    return count;
}

static bool scan_storage(Verify *v, Error *err)
{
    ArchivedLog log;
    bool ok = archived_log_open(v->cli, true, &log, err);
    if (ok && log.open) {
        ok = erasure_scan_segments(&v->scan, v->links.pg, log.past.storage, err) &&
             erasure_scan_archive(&v->scan, v->links.pg, log.past.storage, err);
    }
    archived_log_close(&log);
    return ok;
}

static bool look(Verify *v, Error *err)
{
    Arena *arena = v->cli->arena;
    Str *texts = arena_array(arena, ARGS_MAX, sizeof *texts);
    size_t count = texts_of(v->cli, texts);
    if (!erasure_scan_begin(v->links.pg, v->request.id, texts, count, arena, &v->scan, err) ||
        !erasure_scan_tables(&v->scan, v->links.pg, err) ||
        !erasure_scan_streams(&v->scan, &v->links.session, err) || !scan_storage(v, err)) {
        return false;
    }
    for (size_t i = 0; i < v->scan.count; i++) {
        const ErasurePlace *place = &v->scan.places[i];
        bool expected = strcmp(place->name, "EVENTS") ==
                        0; // of a tenant that keeps them in clear, or not copied yet
        v->sealed += place->sealed;
        v->readable += place->readable;
        v->in_clear += expected ? 0 : place->in_clear;
        v->expected_clear += expected ? place->in_clear : 0;
    }
    return true;
}

// ---- certificates ----

static bool check_chain(Verify *v, Error *err)
{
    uint8_t public_key[ERASURE_PUBLIC_LEN];
    Error wrong = {0};
    if (!certificate_list(v->links.pg, v->cli->arena, &v->chain, &v->chain_count, err)) {
        return false;
    }
    if (v->key != NULL) {
        erasure_key_public(v->key, public_key);
    }
    for (size_t i = 0; i < v->chain_count && v->broken == NULL; i++) {
        const Certificate *before = i > 0 ? &v->chain[i - 1] : NULL;
        if (!certificate_check(&v->chain[i], before, v->key != NULL ? public_key : NULL, &wrong)) {
            v->broken = arena_cstr(v->cli->arena, str_from(wrong.text));
        }
    }
    return true;
}

static bool note(Verify *v, CertificateKind kind, int64_t now_us, const char **ret, Error *err)
{
    AuditHead head = {0};
    char hash[2 * SHA256_LEN + 1];
    AuditDetail details[] = {{"certificate", certificate_kind_name(kind)}};
    AuditNote entry = {
        .kind = AUDIT_ERASURE,
        .tenant = v->request.tenant,
        .action = "erasure.certified",
        .actor = "stentor",
        .target = v->request.recipient_id[0] != '\0' ? v->request.recipient_id : v->request.subject,
        .request_id = v->request.id,
        .program = "stentor",
        .details = details,
        .detail_count = 1,
        .at_us = now_us};
    if (!session_audit(&v->links.session, &entry, &head, err)) {
        return false;
    }
    hex_encode(head.hash, sizeof head.hash, hash);
    *ret = arena_printf(v->cli->arena, "%" PRIu64 ":%s", head.sequence, hash);
    return true;
}

static bool issue(Verify *v, CertificateKind kind, Error *err)
{
    uint8_t public_key[ERASURE_PUBLIC_LEN];
    bool due = false;
    if (!certificate_due(v->links.pg, v->request.id, kind, &due, err) || !due) {
        return err->kind == ERROR_NONE;
    }
    CertificateHead head;
    CertificateSpec spec = {
        .kind = kind,
        .request = &v->request,
        .scan = &v->scan,
        .version = STENTOR_VERSION,
        .now_us = clock_now_us(),
        .public_key = public_key};
    erasure_key_public(v->key, public_key);
    if (!note(v, kind, spec.now_us, &spec.audit_head, err) ||
        !certificate_issue(v->links.pg, &spec, v->key, v->cli->arena, &head, err)) {
        return false;
    }
    v->issued = arena_printf(
        v->cli->arena, "%s%s%s %" PRId64, v->issued, v->issued[0] != '\0' ? ", " : "",
        certificate_kind_name(kind), head.number);
    return true;
}

static bool issue_due(Verify *v, Error *err)
{
    bool clean = v->readable == 0 && v->in_clear == 0 && v->broken == NULL;
    if (!clean || args_has(&v->cli->args, "no-certificate")) {
        return true;
    }
    if (v->key == NULL) {
        cli_note(v->cli, "no certificate is issued: STENTOR_ERASURE_KEY_FILE is not set");
        return true;
    }
    return issue(v, CERTIFICATE_ERASURE, err) && issue(v, CERTIFICATE_FINAL, err);
}

// ---- the command ----

static json_t *places_json(const Verify *v)
{
    json_t *list = json_array();
    for (size_t i = 0; i < v->scan.count; i++) {
        const ErasurePlace *place = &v->scan.places[i];
        json_array_append_new(
            list,
            json_pack(
                "{s:s, s:s, s:I, s:I, s:I, s:I}", "kind", place->kind, "name", place->name,
                "looked_at", (json_int_t)place->looked_at, "sealed", (json_int_t)place->sealed,
                "readable", (json_int_t)place->readable, "in_clear", (json_int_t)place->in_clear));
    }
    return list;
}

static void print_places(const Verify *v)
{
    for (size_t i = 0; i < v->scan.count; i++) {
        const ErasurePlace *place = &v->scan.places[i];
        if (place->sealed + place->in_clear > 0) {
            printf(
                "%-7s  %-44s  %8" PRIu64 " sealed  %4" PRIu64 " readable  %4" PRIu64 " in clear\n",
                place->kind, place->name, place->sealed, place->readable, place->in_clear);
        }
    }
}

static int report(const Verify *v)
{
    const Cli *cli = v->cli;
    bool ok = v->readable == 0 && v->in_clear == 0 && v->broken == NULL;
    if (cli->json) {
        json_t *out = json_pack(
            "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:o}", "id", v->request.id, "state",
            v->request.state, "sealed", (json_int_t)v->sealed, "readable", (json_int_t)v->readable,
            "in_clear", (json_int_t)v->in_clear, "in_clear_on_events",
            (json_int_t)v->expected_clear, "certificates", (json_int_t)v->chain_count, "chain",
            v->broken != NULL ? v->broken : "whole", "issued", v->issued, "places", places_json(v));
        print_json_line(out);
        return ok ? EXIT_DONE : EXIT_FAILED;
    }
    print_places(v);
    const char *const pairs[] = {
        "id",
        v->request.id,
        "sealed",
        arena_printf(cli->arena, "%" PRIu64, v->sealed),
        "readable",
        arena_printf(cli->arena, "%" PRIu64, v->readable),
        "in clear",
        arena_printf(
            cli->arena, "%" PRIu64 ", and %" PRIu64 " on EVENTS", v->in_clear, v->expected_clear),
        "chain",
        v->broken != NULL ? v->broken : "whole",
        "issued",
        v->issued[0] != '\0' ? v->issued : "none",
        NULL};
    print_pairs(cli, pairs);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

static bool is_erased(const ErasureRequest *request, Error *err)
{
    return request->announced ||
           error_set(
               err, ERROR_PERMANENT, "erasure '%s' is %s%s", request->id, request->state,
               strcmp(request->state, "erased") == 0
                   ? ", and not announced (HINT: stentor erase run)"
                   : "");
}

int cmd_erase_verify(Cli *cli)
{
    Error err = {0};
    Verify v = {.cli = cli, .issued = ""};
    const char *id = args_word(&cli->args, 0);
    bool ok = erase_open(cli, &v.links, &err) && erase_key(cli, &v.key, &err) &&
              erasure_read(v.links.pg, id, cli->arena, &v.request, &err) &&
              is_erased(&v.request, &err) && look(&v, &err) && check_chain(&v, &err) &&
              issue_due(&v, &err) && certificates_store(cli, v.links.pg, &err);
    int status = ok ? report(&v) : cli_fail(cli, &err);
    erasure_key_free(v.key);
    erase_close(&v.links);
    return status;
}
