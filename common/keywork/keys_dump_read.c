// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/codec/hash.h"
#include "common/keywork/keys_dump.h"

enum { LINE_MAX_BYTES = 512 };

static const char *const TABLES[] = {"master_keys", "epochs", "data_keys"};

typedef struct Reading {
    FILE *file;
    Sha256 *digest;
    char line[LINE_MAX_BYTES];
    char *piece;
} Reading;

static bool fail_damaged(Error *err)
{
    return error_set(err, ERROR_PERMANENT, "it is no dump of keys: damaged, or cut off");
}

static bool take(Reading *r, void *into, size_t len, Error *err)
{
    if (fread(into, 1, len, r->file) != len) {
        return ferror(r->file) ? error_set(err, ERROR_CONFIG, "cannot be read: %s", strerror(errno))
                               : fail_damaged(err);
    }
    sha256_add(r->digest, str_of(into, len));
    return true;
}

// The line without its end, in r->line.
static bool take_line(Reading *r, Str *ret, Error *err)
{
    for (size_t len = 0; len < sizeof r->line; len++) {
        if (!take(r, r->line + len, 1, err)) {
            return false;
        }
        if (r->line[len] == '\n') {
            *ret = str_of(r->line, len);
            return true;
        }
    }
    return fail_damaged(err);
}

static bool are_columns(Str columns)
{
    bool ok = columns.len > 0;
    for (size_t i = 0; ok && i < columns.len; i++) {
        char c = columns.ptr[i];
        ok = (c >= 'a' && c <= 'z') || c == '_' || c == ',';
    }
    return ok;
}

static bool take_pieces(Reading *r, const KeysDumpReader *reader, Error *err)
{
    for (;;) {
        uint8_t bytes[4];
        if (!take(r, bytes, sizeof bytes, err)) {
            return false;
        }
        uint32_t len = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
                       (uint32_t)bytes[2] << 8 | bytes[3];
        if (len == 0) {
            return reader->end == NULL || reader->end(reader->ctx, err);
        }
        if (len > KEYS_DUMP_PIECE_MAX) {
            return fail_damaged(err);
        }
        if (!take(r, r->piece, len, err) ||
            (reader->piece != NULL && !reader->piece(reader->ctx, str_of(r->piece, len), err))) {
            return false;
        }
    }
}

static bool take_table(Reading *r, const char *name, const KeysDumpReader *reader, Error *err)
{
    Str line = STR_EMPTY;
    Str word = STR_EMPTY;
    if (!take_line(r, &line, err)) {
        return false;
    }
    if (!str_split(&line, ' ', &word) || !str_eq(word, STR("table")) ||
        !str_split(&line, ' ', &word) || !str_eq(word, str_from(name)) || !are_columns(line)) {
        return fail_damaged(err);
    }
    return (reader->table == NULL || reader->table(reader->ctx, word, line, err)) &&
           take_pieces(r, reader, err);
}

static bool take_number(Reading *r, const char *words, int64_t *ret, Error *err)
{
    Str line = STR_EMPTY;
    Str head = str_from(words);
    if (!take_line(r, &line, err)) {
        return false;
    }
    return (str_starts(line, head) && str_to_i64(str_slice(line, head.len, line.len), ret) &&
            *ret >= 0) ||
           fail_damaged(err);
}

// *digest is that of all before this line.
static bool take_digest(Reading *r, const uint8_t digest[SHA256_LEN], Error *err)
{
    char wanted[2 * SHA256_LEN + 1];
    char line[sizeof "sha256 \n" + 2 * SHA256_LEN];
    hex_encode(digest, SHA256_LEN, wanted);
    size_t len = fread(line, 1, sizeof line, r->file); // one more than there is
    Str text = str_of(line, len);
    return (len == sizeof line - 1 && str_starts(text, STR("sha256 ")) &&
            str_eq(str_slice(text, 7, len - 1), str_from(wanted))) ||
           fail_damaged(err);
}

static bool read_body(Reading *r, const KeysDumpReader *reader, KeysDump *ret, Error *err)
{
    int64_t keys = 0;
    bool ok = take_number(r, "stentor keys dump 1 ", &ret->taken_us, err);
    for (size_t i = 0; ok && i < sizeof TABLES / sizeof *TABLES; i++) {
        ok = take_table(r, TABLES[i], reader, err);
    }
    ok = ok && take_number(r, "end ", &keys, err);
    ret->data_keys = (uint64_t)keys;
    return ok;
}

bool keys_dump_read(FILE *file, const KeysDumpReader *reader, KeysDump *ret, Error *err)
{
    uint8_t digest[SHA256_LEN];
    Reading r = {.file = file, .digest = sha256_begin(), .piece = xcalloc(1, KEYS_DUMP_PIECE_MAX)};
    bool ok = read_body(&r, reader, ret, err);
    sha256_end(r.digest, digest);
    free(r.piece);
    return ok && take_digest(&r, digest, err);
}

bool keys_dump_check(const char *path, KeysDump *ret, Error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return error_set(err, ERROR_CONFIG, "cannot read '%s': %s", path, strerror(errno));
    }
    bool ok = keys_dump_read(file, &(KeysDumpReader){.ctx = NULL}, ret, err) ||
              error_wrap(err, "'%.160s'", path);
    (void)fclose(file);
    return ok;
}
