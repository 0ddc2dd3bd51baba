// SPDX-License-Identifier: Apache-2.0
// Killed while it writes: a file with another name is left, which no reader looks at and the next
// dump writes over.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/cleanup.h"
#include "common/base/crash.h"
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/db/db.h"
#include "common/db/errors.h"
#include "common/keywork/keys_dump.h"

DEFINE_CLEANUP(free_result, PGresult *, PQclear)

enum { PATH_SIZE = 4096, FILE_MODE = 0600 };

static const char COPY_HEAD[] =
    "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0"; // and a NUL of the literal's own
enum { COPY_HEAD_LEN = 19 };
static const char COPY_TAIL[] = "\377\377";

// The columns by name: a later migration may add some.
static const char *const TABLES[][3] = {
    {"master_keys", "kind,key_id,check_value,registered_at,current_at,retired_at",
     "SELECT kind, key_id, check_value, registered_at, current_at, retired_at FROM "
     "keys.master_keys"},
    {"epochs", "number,key_id,opened_at,closed_at,emptied_at,destroyed_at",
     "SELECT number, key_id, opened_at, closed_at, emptied_at, destroyed_at FROM keys.epochs"},
    {"data_keys", "tenant_id,subject,generation,wrapped,created_at,destroyed_at,restricted_by",
     "FETCH 4096 FROM dump_rows"},
};

typedef struct Writing {
    PGconn *pg;
    FILE *file;
    Sha256 *digest;
    Buf piece;
    atomic_bool *stop;
    uint64_t rows; // of the table under way
} Writing;

static bool fail_disk(Error *err)
{
    return error_set(
        err, ERROR_TRANSIENT, "the dump of keys cannot be written: %s", strerror(errno));
}

static bool put(Writing *w, const void *bytes, size_t len, Error *err)
{
    sha256_add(w->digest, str_of(bytes, len));
    return fwrite(bytes, 1, len, w->file) == len || fail_disk(err);
}

static bool put_text(Writing *w, Error *err, const char *text)
{
    return put(w, text, strlen(text), err);
}

static bool put_piece(Writing *w, Error *err)
{
    uint32_t len = (uint32_t)w->piece.len;
    uint8_t head[4] = {
        (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    bool ok =
        put(w, head, sizeof head, err) && (len == 0 || put(w, w->piece.ptr, w->piece.len, err));
    buf_clear(&w->piece);
    return ok;
}

// ---- rows, as COPY BINARY has them ----

static void add_u32(Buf *buf, uint32_t value)
{
    uint8_t bytes[4] = {
        (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    (void)buf_append(buf, bytes, sizeof bytes);
}

static void add_row(Writing *w, const PGresult *rows, int row)
{
    int columns = PQnfields(rows);
    uint8_t count[2] = {0, (uint8_t)columns};
    (void)buf_append(&w->piece, count, sizeof count);
    for (int i = 0; i < columns; i++) {
        if (db_is_null(rows, row, i)) {
            add_u32(&w->piece, UINT32_MAX);
        } else {
            Str value = db_get_text(rows, row, i);
            add_u32(&w->piece, (uint32_t)value.len);
            (void)buf_append(&w->piece, value.ptr, value.len);
        }
    }
    w->rows++;
}

static PGresult *ask(Writing *w, const char *sql, Error *err)
{
    PGresult *rows = PQexecParams(w->pg, sql, 0, NULL, NULL, NULL, NULL, 1);
    ExecStatusType status = PQresultStatus(rows);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        return rows;
    }
    (void)db_error_result(rows, "keys", err);
    PQclear(rows);
    return NULL;
}

static bool tell(Writing *w, const char *sql, Error *err)
{
    PGresult *done = ask(w, sql, err);
    PQclear(done);
    return done != NULL;
}

// *ret_count: so many rows.
static bool put_rows(Writing *w, const char *sql, int *ret_count, Error *err)
{
    if (w->stop != NULL && atomic_load(w->stop)) {
        return error_set(err, ERROR_CANCELLED, "the dump of keys is stopped");
    }
    CLEANUP(free_result) PGresult *rows = ask(w, sql, err);
    *ret_count = db_rows(rows);
    for (int i = 0; i < *ret_count; i++) {
        add_row(w, rows, i);
    }
    return rows != NULL &&
           (!w->piece.full || error_set(err, ERROR_PERMANENT, "rows of keys are too long")) &&
           (*ret_count == 0 || put_piece(w, err));
}

static bool put_table(Writing *w, const char *const table[3], bool by_cursor, Error *err)
{
    char line[200];
    int count = 0;
    (void)snprintf(line, sizeof line, "table %s %s\n", table[0], table[1]);
    w->rows = 0;
    (void)buf_append(&w->piece, COPY_HEAD, COPY_HEAD_LEN);
    bool ok = put_text(w, err, line) && put_piece(w, err);
    do {
        ok = ok && put_rows(w, table[2], &count, err);
    } while (ok && by_cursor && count > 0);
    (void)buf_append(&w->piece, COPY_TAIL, 2);
    return ok && put_piece(w, err) && put_piece(w, err); // and the empty one
}

static bool put_end(Writing *w, Error *err)
{
    char line[40];
    uint8_t digest[SHA256_LEN];
    char hex[2 * SHA256_LEN + 1];
    (void)snprintf(line, sizeof line, "end %llu\n", (unsigned long long)w->rows);
    bool ok = put_text(w, err, line);
    sha256_end(w->digest, digest);
    hex_encode(digest, sizeof digest, hex);
    w->digest = sha256_begin(); // of nothing: it is freed as every other
    return ok && put_text(w, err, "sha256 ") && put_text(w, err, hex) && put_text(w, err, "\n");
}

static bool put_all(Writing *w, int64_t now_us, KeysDump *ret, Error *err)
{
    char line[64];
    (void)snprintf(line, sizeof line, "stentor keys dump 1 %lld\n", (long long)now_us);
    bool ok = tell(w, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err) &&
              tell(w, "SELECT keys.read_dump()", err) && put_text(w, err, line);
    for (int i = 0; ok && i < 3; i++) {
        ok = put_table(w, TABLES[i], i == 2, err);
    }
    ok = ok && tell(w, "COMMIT", err) && put_end(w, err);
    *ret = (KeysDump){.taken_us = now_us, .data_keys = w->rows};
    return ok;
}

// ---- the file ----

static bool sync_folder(const char *path, Error *err)
{
    char folder[PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    int fd = open(slash != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return ok || fail_disk(err);
}

static bool write_file(
    PGconn *pg, FILE *file, int64_t now_us, atomic_bool *stop, KeysDump *ret, Error *err)
{
    Writing w = {.pg = pg, .file = file, .digest = sha256_begin(), .stop = stop};
    uint8_t unused[SHA256_LEN];
    buf_init(&w.piece, KEYS_DUMP_PIECE_MAX);
    bool ok = put_all(&w, now_us, ret, err) &&
              ((fflush(file) == 0 && fsync(fileno(file)) == 0) || fail_disk(err));
    sha256_end(w.digest, unused);
    buf_done(&w.piece);
    return ok;
}

bool keys_dump_write(
    PGconn *pg, const char *path, int64_t now_us, atomic_bool *stop, KeysDump *ret, Error *err)
{
    char temporary[PATH_SIZE];
    KeysDump made = {0};
    if (snprintf(temporary, sizeof temporary, "%s.new", path) >= (int)sizeof temporary) {
        return error_set(err, ERROR_CONFIG, "the dump's path is too long");
    }
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (file == NULL) {
        return error_set(err, ERROR_CONFIG, "cannot write '%s': %s", temporary, strerror(errno));
    }
    bool ok = write_file(pg, file, now_us, stop, &made, err);
    ok = (fclose(file) == 0 || (ok && fail_disk(err))) && ok;
    CRASH_POINT_IF("keywork.dumped", ok);
    ok = ok && (rename(temporary, path) == 0 || fail_disk(err)) && sync_folder(path, err);
    if (!ok) {
        (void)unlink(temporary);
        return false;
    }
    *ret = made;
    return true;
}
