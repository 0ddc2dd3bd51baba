// SPDX-License-Identifier: Apache-2.0
// links: stentor_http
// A connection's bytes: heads and bodies one after the other. Law: whatever is taken reads the same
// when it comes in two pieces, and what a head says of its body is never both a length and chunks.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/http/chunked.h"
#include "common/http/client.h"
#include "common/http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t take_chunks(Str *rest, ChunkedResult *ret_result)
{
    Chunked chunked = {0};
    uint64_t hash = 0;
    Str piece = STR_EMPTY;
    while ((*ret_result = chunked_take(&chunked, rest, &piece)) == CHUNKED_IS_DATA) {
        for (size_t i = 0; i < piece.len; i++) {
            hash = hash * 31 + (unsigned char)piece.ptr[i] + 1;
        }
    }
    return hash;
}

static void compare_pieces(Str all)
{
    Str whole = all;
    ChunkedResult expected;
    uint64_t hash = take_chunks(&whole, &expected);
    Chunked chunked = {0};
    uint64_t again = 0;
    ChunkedResult result = CHUNKED_NEEDS_MORE;
    for (size_t i = 0; i < all.len && (result == CHUNKED_NEEDS_MORE || result == CHUNKED_IS_DATA);
         i++) {
        Str one = str_slice(all, i, i + 1);
        Str piece = STR_EMPTY;
        result = chunked_take(&chunked, &one, &piece);
        if (result == CHUNKED_IS_DATA) {
            assert(piece.len == 1 && one.len == 0);
            again = again * 31 + (unsigned char)piece.ptr[0] + 1;
        }
    }
    assert(again == hash);
    assert((result == CHUNKED_IS_END) == (expected == CHUNKED_IS_END));
    assert((result == CHUNKED_IS_BAD) == (expected == CHUNKED_IS_BAD));
}

static void check_head(const HttpHead *head)
{
    assert(head->method.len > 0 && head->path.len > 0 && head->field_count <= HTTP_FIELDS_MAX);
    assert(!str_has_control(head->path) && !str_has_control(head->query));
    assert(!head->chunked || head->length == 0);
    HttpProxies proxies = {.count = 0};
    HttpAddress at = {{0}};
    for (size_t i = 0; i < head->field_count; i++) {
        Str name = head->fields[i].name;
        assert(name.len > 0 && str_find(name, ' ') < 0 && !str_has_control(name));
        assert(
            str_find(head->fields[i].value, '\0') < 0 && str_find(head->fields[i].value, '\n') < 0);
        (void)http_client_of(&proxies, head->fields[i].value, &at);
        (void)http_proxies_parse(head->fields[i].value, &proxies, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Str rest = str_of(data, size);
    size_t scanned = 0;
    size_t len = 0;
    HttpRefusal refusal = {0};
    while (rest.len > 0 && http_head_scan(rest, &scanned, &len, &refusal) == HEAD_WHOLE) {
        Arena *arena = arena_new(0);
        HttpHead head;
        assert(len <= rest.len && len <= HTTP_HEAD_MAX);
        bool good =
            http_head_parse(arena_str(arena, str_slice(rest, 0, len)), arena, &head, &refusal);
        rest = str_slice(rest, len, rest.len);
        scanned = 0;
        if (good) {
            check_head(&head);
        } else {
            assert(refusal.status >= 400 && refusal.detail != NULL);
        }
        if (good && head.chunked) {
            ChunkedResult result = CHUNKED_IS_BAD;
            compare_pieces(rest);
            (void)take_chunks(&rest, &result);
            good = result == CHUNKED_IS_END;
        } else if (good) {
            good = head.length <= rest.len;
            rest = good ? str_slice(rest, (size_t)head.length, rest.len) : STR_EMPTY;
        }
        arena_free(arena);
        if (!good) {
            break;
        }
    }
    return 0;
}
