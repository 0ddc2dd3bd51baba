// SPDX-License-Identifier: Apache-2.0
// erase certificate, erase key; and certificates as objects.
#include "services/cli/erase/certificates.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/id.h"
#include "common/storage/storage_wait.h"

bool erase_key(Cli *cli, ErasureKey **ret, Error *err)
{
    const char *path = cli->settings.erasure_key_file;
    Str text = STR_EMPTY;
    *ret = NULL;
    if (path[0] == '\0') {
        return true;
    }
    if (!file_read(path, ERASURE_KEY_FILE_MAX, cli->arena, &text, err)) {
        return false;
    }
    *ret = erasure_key_parse(text, err);
    return *ret != NULL || error_wrap(err, "STENTOR_ERASURE_KEY_FILE '%s'", path);
}

static const char *lines_of(const Certificate *certificate, Arena *arena)
{
    char signature[2 * ERASURE_SIGNATURE_LEN + 1];
    hex_encode(certificate->signature.ptr, ERASURE_SIGNATURE_LEN, signature);
    return arena_printf(arena, STR_FMT "\n%s\n", STR_ARG(certificate->body), signature);
}

// ---- objects ----

static bool put(
    StorageWait *storage, const Certificate *certificate, const char *key, Arena *arena, Error *err)
{
    Str text = str_from(lines_of(certificate, arena));
    StoragePut object = {
        .key = str_from(key), .bytes = text.ptr, .len = text.len, .condition = STORAGE_IF_ABSENT};
    sha256(text, object.sha256);
    StorageOutcome outcome = storage_wait_put(storage, &object, NULL, err);
    return outcome == STORAGE_DONE ||
           (outcome == STORAGE_PRECONDITION
                ? error_set(
                      err, ERROR_CONFIG,
                      "object '%s' is there with another text: the storage is another "
                      "installation's, or this database was restored",
                      key)
                : false);
}

static bool store_one(
    StorageWait *storage, PGconn *pg, const Certificate *certificate, Arena *arena, Error *err)
{
    const char *key = arena_printf(
        arena, "erasure/%08" PRId64 "-%s-%s.json", certificate->number, certificate->request,
        certificate->kind);
    if (!put(storage, certificate, key, arena, err)) {
        return false;
    }
    const char *params[] = {arena_printf(arena, "%" PRId64, certificate->number), key};
    AUTO(PGresult)
    done = erasure_pg_query(pg, "SELECT erasure.stored($1::bigint, $2)", 2, params, err);
    return done != NULL;
}

bool certificates_store(Cli *cli, PGconn *pg, Error *err)
{
    const Certificate *list = NULL;
    size_t count = 0;
    if (cli->settings.storage.url[0] == '\0') {
        return true;
    }
    StorageWait *storage = storage_wait_open(&cli->settings.storage, err);
    bool ok = storage != NULL && certificate_list(pg, cli->arena, &list, &count, err);
    for (size_t i = 0; ok && i < count; i++) {
        ok = list[i].stored_as[0] != '\0' || store_one(storage, pg, &list[i], cli->arena, err);
    }
    storage_wait_close(storage);
    return ok;
}

// ---- printed ----

static int print_certificate(Cli *cli, PGconn *pg, Error *err)
{
    const Certificate *list = NULL;
    size_t count = 0;
    const char *id = args_word(&cli->args, 0);
    const char *kind = args_flag(&cli->args, "kind");
    if (!certificate_list(pg, cli->arena, &list, &count, err)) {
        return cli_fail(cli, err);
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].request, id) == 0 &&
            strcmp(list[i].kind, kind != NULL ? kind : "erasure") == 0) {
            fputs(lines_of(&list[i], cli->arena), stdout);
            return EXIT_DONE;
        }
    }
    return cli_fail_as(
        cli, EXIT_NOT_FOUND, "there is no such certificate (HINT: stentor erase verify %s)", id);
}

int cmd_erase_certificate(Cli *cli)
{
    Error err = {0};
    PGconn *pg = cli_need(cli->settings.database_url, "STENTOR_DATABASE_URL", &err)
                     ? erasure_pg_open(cli->settings.database_url, &err)
                     : NULL;
    int status = pg != NULL ? print_certificate(cli, pg, &err) : cli_fail(cli, &err);
    PQfinish(pg);
    return status;
}

static int print_public(Cli *cli, Error *err)
{
    ErasureKey *key = NULL;
    uint8_t half[ERASURE_PUBLIC_LEN];
    char hex[2 * ERASURE_PUBLIC_LEN + 1];
    if (!cli_need(cli->settings.erasure_key_file, "STENTOR_ERASURE_KEY_FILE", err) ||
        !erase_key(cli, &key, err)) {
        return cli_fail(cli, err);
    }
    erasure_key_public(key, half);
    erasure_key_free(key);
    hex_encode(half, sizeof half, hex);
    puts(hex);
    return EXIT_DONE;
}

int cmd_erase_key(Cli *cli)
{
    Error err = {0};
    Str pem = STR_EMPTY;
    if (args_has(&cli->args, "public")) {
        return print_public(cli, &err);
    }
    if (!erasure_key_make(cli->arena, &pem, &err)) {
        return cli_fail(cli, &err);
    }
    fwrite(pem.ptr, 1, pem.len, stdout);
    OPENSSL_cleanse((void *)(uintptr_t)pem.ptr, pem.len);
    return EXIT_DONE;
}
