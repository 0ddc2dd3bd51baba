// SPDX-License-Identifier: Apache-2.0
// links: svc_ingest
// Any bytes as what EVENTS keeps of an event: they stay as they are, or are refused with words and
// kept. The same bytes as an event's payload: sealed and opened, they are what they were.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/domain/event_seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char KEYS[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                           "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";

static void open_foreign(EventKeys *keys, Str bytes, Arena *arena)
{
    Error err = {0};
    char *text = arena_printf(
        arena, "\xff"
               "SE1");
    char *framed = arena_alloc(arena, bytes.len + 4);
    memcpy(framed, text, 4);
    memcpy(framed + 4, bytes.ptr, bytes.len);
    BusMessage message = {
        .subject = STR("evt.acme.stay"), .payload = str_of(framed, bytes.len + 4)};
    bool opened = event_open(keys, 0, &message, arena, &err);
    assert(!opened && err.text[0] != '\0' && message.kept.len == bytes.len + 4);
    BusMessage raw = {.subject = STR("evt.acme.stay"), .payload = bytes};
    (void)event_open(keys, 0, &raw, arena, &err);
}

static void there_and_back(EventKeys *keys, Str bytes, Arena *arena)
{
    Error err = {0};
    BusOut out = {.subject = "evt.acme.stay", .event_id = STR("e-1"), .payload = bytes};
    bool sealed = event_seal_out(keys, 0, &out, arena, &err);
    assert(sealed);
    BusMessage message = {.subject = STR("evt.acme.stay"), .payload = out.payload};
    bool opened = event_open(keys, 0, &message, arena, &err);
    assert(opened && message.payload.len == bytes.len);
    assert(bytes.len == 0 || memcmp(message.payload.ptr, bytes.ptr, bytes.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 64 * 1024) {
        return 0;
    }
    static EventKeys *keys;
    if (keys == NULL) {
        keys = event_keys_new(master_key_parse(str_from(KEYS), NULL));
    }
    Arena *arena = arena_new(0);
    Str bytes = str_of(size > 0 ? data : (const uint8_t *)"", size);
    open_foreign(keys, bytes, arena);
    there_and_back(keys, bytes, arena);
    arena_free(arena);
    return 0;
}
