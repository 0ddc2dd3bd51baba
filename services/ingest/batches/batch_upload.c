// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/batches/batch_upload.h"

#include <inttypes.h>
#include <stdlib.h>

void upload_init(
    Upload *u, const MemberRules *rules, DataKey *key, const ChunkPlace *place, Str body,
    Arena *arena)
{
    *u = (Upload){.rules = *rules, .key = key, .place = *place, .rest = body, .arena = arena};
    buf_init(&u->lines, UPLOAD_BROKEN_BYTES_MAX);
    u->open = xcalloc(CHUNK_MEMBERS_MAX, sizeof *u->open);
    u->chunk = arena_new(0);
}

void upload_done(Upload *u)
{
    buf_done(&u->lines);
    arena_free(u->chunk);
    free(u->open);
    free(u->counts);
    free(u->blobs);
}

static bool close_chunk(Upload *u, Error *err)
{
    if (u->open_count == 0) {
        return true;
    }
    if (u->chunks == u->chunk_room) {
        u->chunk_room = u->chunk_room == 0 ? 16 : 2 * u->chunk_room;
        u->counts = xrealloc(u->counts, u->chunk_room * sizeof *u->counts);
        u->blobs = xrealloc(u->blobs, u->chunk_room * sizeof *u->blobs);
    }
    u->place.ordinal = (int64_t)u->chunks;
    Str blob = STR_EMPTY;
    if (!chunk_pack(u->key, &u->place, u->open, u->open_count, u->chunk, &blob, err)) {
        return false;
    }
    u->counts[u->chunks] = (int32_t)u->open_count;
    u->blobs[u->chunks] = arena_str(u->arena, blob);
    u->chunks++;
    u->members += (int64_t)u->open_count;
    u->open_count = 0;
    u->open_bytes = 0;
    arena_reset(u->chunk);
    return true;
}

static bool note_broken(Upload *u, const FieldError *wrong, Error *err)
{
    u->broken++;
    buf_printf(
        &u->lines, "%s{\"line\":%" PRId64 ",\"field\":", u->lines.len > 0 ? "," : "", u->line);
    buf_json(&u->lines, str_from(wrong->field));
    buf_cstr(&u->lines, ",\"detail\":");
    buf_json(&u->lines, str_from(wrong->text));
    buf_char(&u->lines, '}');
    return !u->lines.full || error_set(
                                 err, ERROR_PERMANENT,
                                 "too many lines of the part are wrong to list them; check the "
                                 "file and upload it again");
}

static bool read_line(Upload *u, Str line, Error *err)
{
    Member member = {0};
    FieldError wrong = {.field = ""};
    if (!batch_member_parse(line, &u->rules, u->chunk, &member, &wrong)) {
        return note_broken(u, &wrong, err);
    }
    size_t bytes = chunk_member_bytes(&member);
    if (u->open_bytes + bytes > CHUNK_BYTES_MAX) {
        // What the arena holds of this member goes with the chunk, so it is read once more.
        return close_chunk(u, err) && read_line(u, line, err);
    }
    u->open[u->open_count++] = member;
    u->open_bytes += bytes;
    return u->open_count < CHUNK_MEMBERS_MAX || close_chunk(u, err);
}

bool upload_step(Upload *u, bool *ret_ended, Error *err)
{
    *ret_ended = false;
    Str line = STR_EMPTY;
    for (int i = 0; i < UPLOAD_SLICE_LINES; i++) {
        if (!str_split(&u->rest, '\n', &line)) {
            *ret_ended = true;
            return close_chunk(u, err);
        }
        if (u->rest.ptr == NULL && line.len == 0) {
            continue; // after the last line's end
        }
        if (++u->line > UPLOAD_LINES_MAX) {
            return error_set(
                err, ERROR_PERMANENT,
                "a part has at most %d lines; upload the rest as another part", UPLOAD_LINES_MAX);
        }
        line = str_trim(line);
        if (line.len > 0 && !read_line(u, line, err)) {
            return false;
        }
    }
    return true;
}
