// SPDX-License-Identifier: Apache-2.0
// Choices: a fuzzer's bytes as decisions, for targets that build what they try instead of taking
// the bytes for it. When the bytes are used up every choice is the first one, so that the first
// must end what is built.
#pragma once

#include "common/base/buf.h"

typedef struct Choices {
    const uint8_t *at;
    const uint8_t *end;
} Choices;

// [0, count)
static inline uint32_t choose(Choices *choices, uint32_t count)
{
    return choices->at < choices->end ? *choices->at++ % count : 0;
}

static inline uint64_t choose_number(Choices *choices)
{
    uint64_t value = 0;
    for (uint32_t bytes = choose(choices, 9); bytes > 0; bytes--) {
        value = value << 8 | choose(choices, 256);
    }
    return value;
}

// Up to `max` of the fuzzer's own bytes.
static inline Str choose_bytes(Choices *choices, size_t max)
{
    size_t left = (size_t)(choices->end - choices->at);
    size_t len = choose(choices, 256);
    len = len % (max + 1);
    len = len > 0 && left > 0 && len > left - 1 ? left - 1 : left == 0 ? 0 : len;
    Str bytes = str_of(choices->at, len);
    choices->at += len;
    return bytes;
}

#define CHOOSE_TEXT(choices, texts)                                                                \
    str_from((texts)[choose((choices), (uint32_t)(sizeof(texts) / sizeof *(texts)))])
