// SPDX-License-Identifier: Apache-2.0
// links: stentor_codec
// Any bytes as a body frame: refused, or at most BODY_BYTES_MAX of plain text. And any bytes as a
// body come back. The first byte says whether the frame is under a prefix, the rest is the frame
// behind its id.
#include <stdlib.h>
#include <string.h>

#include "common/codec/body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static BodyPrefix *make_prefix(void)
{
    static char html[] = "<p>Dear {{name}}, your order {{order}} is on its way.</p>";
    Stentor__V1__LocaleVariant locale;
    stentor__v1__locale_variant__init(&locale);
    locale.html = html;
    Stentor__V1__LocaleVariant *locales[] = {&locale};
    Stentor__V1__TemplateVersion version;
    stentor__v1__template_version__init(&version);
    version.n_locales = 1;
    version.locales = locales;
    return body_prefix_new(&version);
}

static void try_frame(const BodyPrefix *prefix, Str rest, Arena *arena)
{
    uint64_t id = body_prefix_id(prefix);
    char *frame = arena_alloc(arena, rest.len + 8);
    for (size_t i = 0; i < 8; i++) {
        frame[i] = (char)(uint8_t)(id >> (56 - 8 * i));
    }
    if (rest.len > 0) {
        memcpy(frame + 8, rest.ptr, rest.len);
    }
    Str plain;
    Error err = {0};
    if (body_unpack(prefix, str_of(frame, rest.len + 8), arena, &plain, &err)) {
        require(plain.len <= BODY_BYTES_MAX);
    } else {
        require(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
    }
}

static void try_round_trip(const BodyPrefix *prefix, Str plain, Arena *arena)
{
    Str frame;
    Str back;
    Error err = {0};
    if (!body_pack(prefix, plain, arena, &frame, &err)) {
        require(plain.len > BODY_BYTES_MAX);
        return;
    }
    require(body_unpack(prefix, frame, arena, &back, &err));
    require(str_eq(back, plain));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static BodyPrefix *prefix;
    if (prefix == NULL) {
        prefix = make_prefix();
    }
    Arena *arena = arena_new(0);
    Str input = str_of(data, size);
    const BodyPrefix *chosen = size > 0 && (data[0] & 1u) != 0 ? prefix : NULL;
    try_round_trip(chosen, input, arena);
    try_frame(chosen, str_slice(input, 1, size), arena);
    arena_free(arena);
    return 0;
}
