// SPDX-License-Identifier: Apache-2.0
// A frame of ours: 8 bytes of prefix id, most significant first (0: none), then one zstd frame that
// states its length.
#define ZSTD_STATIC_LINKING_ONLY // dictionaries of raw content: ZSTD_createCDict_advanced
#include "common/codec/body.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/base/buf.h"
#include "common/codec/hash.h"

enum {
    // Against a prefix nearly everything is a match, so literals are not worth entropy coding:
    // level -1 makes frames as
    // small as level 1 does and takes half the time to pack, a fifth to unpack (figures in the
    // DECISIONS).
    LEVEL_WITH_PREFIX = -1,
    LEVEL_ALONE = 1,
    LEVEL_QUICK = -1, // a tenth more bytes, half of the time
    PREFIX_BYTES_MAX =
        1024 *
        1024, // more of a template than this is not used; every holder cuts at the same place
    HEAD_LEN = 8,
};

struct BodyPrefix {
    uint64_t id;
    ZSTD_CDict *pack;
    ZSTD_DDict *unpack;
};

static void add_source(Buf *content, const char *source)
{
    Str text = str_slice(str_from(source), 0, PREFIX_BYTES_MAX - content->len);
    buf_str(content, text);
}

static void gather(const Stentor__V1__TemplateVersion *version, Buf *content)
{
    for (size_t i = 0; i < version->n_locales; i++) {
        const Stentor__V1__LocaleVariant *locale = version->locales[i];
        add_source(content, locale->subject);
        add_source(content, locale->preheader);
        add_source(content, locale->html);
        add_source(content, locale->text);
    }
    for (size_t i = 0; i < version->n_partials; i++) {
        add_source(content, version->partials[i]->source);
    }
}

static uint64_t read_id(const uint8_t *bytes)
{
    uint64_t id = 0;
    for (size_t i = 0; i < HEAD_LEN; i++) {
        id = id << 8 | bytes[i];
    }
    return id;
}

BodyPrefix *body_prefix_new(const Stentor__V1__TemplateVersion *version)
{
    Buf content;
    buf_init(&content, PREFIX_BYTES_MAX);
    gather(version, &content);
    Str view = buf_view(&content);
    const ZSTD_customMem memory = {NULL, NULL, NULL};
    // A body is about as long as its template; the hint sizes zstd's window.
    ZSTD_compressionParameters params = ZSTD_getCParams(LEVEL_WITH_PREFIX, view.len, view.len);
    BodyPrefix *prefix = xmalloc(sizeof *prefix);
    uint8_t digest[SHA256_LEN];
    sha256(view, digest);
    prefix->id = read_id(digest) != 0 ? read_id(digest) : 1;
    prefix->pack = ZSTD_createCDict_advanced(
        view.ptr, view.len, ZSTD_dlm_byCopy, ZSTD_dct_rawContent, params, memory);
    prefix->unpack =
        ZSTD_createDDict_advanced(view.ptr, view.len, ZSTD_dlm_byCopy, ZSTD_dct_rawContent, memory);
    assert(prefix->pack != NULL && prefix->unpack != NULL);
    buf_done(&content);
    return prefix;
}

void body_prefix_free(BodyPrefix *prefix)
{
    if (prefix != NULL) {
        ZSTD_freeCDict(prefix->pack);
        ZSTD_freeDDict(prefix->unpack);
        free(prefix);
    }
}

uint64_t body_prefix_id(const BodyPrefix *prefix)
{
    return prefix == NULL ? 0 : prefix->id;
}

// Compressing needs room for the worst case; only what came of it goes into the arena.
static uint8_t *get_scratch(size_t size)
{
    static uint8_t *scratch;
    static size_t scratch_size;
    if (size > scratch_size) {
        scratch = xrealloc(scratch, size);
        scratch_size = size;
    }
    return scratch;
}

static size_t compress(const BodyPrefix *prefix, int level, Str plain, uint8_t *out, size_t room)
{
    static ZSTD_CCtx *context; // of the process, used by its one loop thread
    if (context == NULL) {
        context = ZSTD_createCCtx();
        assert(context != NULL);
    }
    if (prefix == NULL) {
        return ZSTD_compressCCtx(context, out, room, plain.ptr, plain.len, level);
    }
    return ZSTD_compress_usingCDict(context, out, room, plain.ptr, plain.len, prefix->pack);
}

static Str pack(const BodyPrefix *prefix, int level, Str plain, Arena *arena)
{
    size_t room = ZSTD_compressBound(plain.len);
    uint8_t *scratch = get_scratch(HEAD_LEN + room);
    uint64_t id = body_prefix_id(prefix);
    for (size_t i = 0; i < HEAD_LEN; i++) {
        scratch[i] = (uint8_t)(id >> (56 - 8 * i));
    }
    size_t size = compress(prefix, level, plain, scratch + HEAD_LEN, room);
    assert(!ZSTD_isError(size)); // it had room for the worst case
    return str_of(arena_copy(arena, scratch, HEAD_LEN + size), HEAD_LEN + size);
}

bool body_pack(const BodyPrefix *prefix, Str plain, Arena *arena, Str *ret_frame, Error *err)
{
    if (plain.len > BODY_BYTES_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "body of %zu bytes is above %d", plain.len, (int)BODY_BYTES_MAX);
    }
    *ret_frame = pack(prefix, LEVEL_ALONE, plain, arena);
    return true;
}

bool body_pack_quickly(Str plain, Arena *arena, Str *ret_frame)
{
    if (plain.len > BODY_BYTES_MAX) {
        return false;
    }
    *ret_frame = pack(NULL, LEVEL_QUICK, plain, arena);
    return true;
}

static size_t decompress(const BodyPrefix *prefix, Str frame, void *out, size_t room)
{
    static ZSTD_DCtx *context;
    if (context == NULL) {
        context = ZSTD_createDCtx();
        assert(context != NULL);
    }
    const ZSTD_DDict *dictionary = prefix == NULL ? NULL : prefix->unpack;
    return ZSTD_decompress_usingDDict(context, out, room, frame.ptr, frame.len, dictionary);
}

bool body_unpack(const BodyPrefix *prefix, Str frame, Arena *arena, Str *ret_plain, Error *err)
{
    if (frame.len < HEAD_LEN) {
        return error_set(err, ERROR_PERMANENT, "body frame of %zu bytes is too short", frame.len);
    }
    uint64_t id = read_id((const uint8_t *)frame.ptr);
    if (id != body_prefix_id(prefix)) {
        return error_set(
            err, ERROR_PERMANENT, "body frame needs prefix %016llx, not %016llx",
            (unsigned long long)id, (unsigned long long)body_prefix_id(prefix));
    }
    Str packed = str_slice(frame, HEAD_LEN, frame.len);
    unsigned long long size = ZSTD_getFrameContentSize(packed.ptr, packed.len);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
        return error_set(err, ERROR_PERMANENT, "body frame is not zstd or states no length");
    }
    if (size > BODY_BYTES_MAX) {
        return error_set(
            err, ERROR_PERMANENT, "body of %llu bytes is above %d", size, (int)BODY_BYTES_MAX);
    }
    char *plain = arena_alloc(arena, (size_t)size + 1);
    size_t written = decompress(prefix, packed, plain, (size_t)size);
    if (ZSTD_isError(written) || written != size) {
        return error_set(
            err, ERROR_PERMANENT, "body frame is damaged: %s",
            ZSTD_isError(written) ? ZSTD_getErrorName(written) : "wrong length");
    }
    plain[size] = '\0';
    *ret_plain = (Str){plain, (size_t)size};
    return true;
}
