// SPDX-License-Identifier: Apache-2.0
// links: svc_ingest
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/campaign/batch_chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t NOW_US = INT64_C(1795199136000000);

static void check_member(const Member *m)
{
    assert(!str_has_control(m->to) && str_is_utf8(m->to));
    assert(m->to.len > 0 || m->recipient_id.len > 0);
    assert(!str_has_control(m->name) && m->name.len <= REQUEST_NAME_MAX);
    assert(m->locale.len <= REQUEST_LOCALE_MAX && m->variables.len <= 1000);
    assert(m->variables.len == 0 || m->variables.ptr[0] == '{');
}

// A line as it comes from outside; what is taken survives being packed.
static void try_line(Str line, Arena *arena)
{
    MemberRules rules = {
        .model = {.template_key = STR("welcome"), .channel = CHANNEL_EMAIL},
        .variables_max = 1000,
        .now_us = NOW_US,
    };
    Member member = {0};
    FieldError wrong = {.field = ""};
    if (!batch_member_parse(line, &rules, arena, &member, &wrong)) {
        assert(wrong.text[0] != '\0');
        return;
    }
    check_member(&member);
    Member *back = NULL;
    size_t count = 0;
    Error err = {0};
    Str plain = chunk_encode(&member, 1, arena);
    assert(plain.len <= chunk_member_bytes(&member) + 3);
    assert(chunk_decode(plain, arena, &back, &count, &err) && count == 1);
    assert(str_eq(back[0].to, member.to) && str_eq(back[0].variables, member.variables));
}

// Any bytes as a chunk: refused, or members within them.
static void try_chunk(Str plain, Arena *arena)
{
    Member *members = NULL;
    size_t count = 0;
    Error err = {0};
    if (!chunk_decode(plain, arena, &members, &count, &err)) {
        assert(err.kind == ERROR_PERMANENT);
        return;
    }
    assert(count >= 1 && count <= CHUNK_MEMBERS_MAX);
    for (size_t i = 0; i < count; i++) {
        assert(members[i].to.len + members[i].variables.len <= plain.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    try_line(str_of(data, size), arena);
    try_chunk(str_of(data, size), arena);
    arena_free(arena);
    return 0;
}
