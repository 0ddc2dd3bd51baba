// SPDX-License-Identifier: Apache-2.0
#include "common/base/id.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ENTROPY_LEN = 10 };

// A system call for each use (0.27 us, and less where glibc asks the vDSO): bytes kept for later
// would be handed out twice by two copies of a machine that was restored from one snapshot, and so
// would be a nonce under one key.
void random_bytes(void *out, size_t len)
{
    uint8_t *at = out;
    while (len > 0) {
        size_t part = len < 256 ? len : 256; // up to 256 bytes come whole and are not interrupted
        if (getrandom(at, part, 0) != (ssize_t)part) {
            fputs("stentor: the system provides no random bytes (getrandom)\n", stderr);
            abort();
        }
        at += part;
        len -= part;
    }
}

double random_fraction(void)
{
    uint32_t value = 0;
    random_bytes(&value, sizeof value);
    return (double)value / 4294967296.0;
}

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static void write_ulid(uint64_t ms, const uint8_t entropy[ENTROPY_LEN], char *out)
{
    for (int i = 9; i >= 0; i--) {
        out[i] = crockford[ms & 31u];
        ms >>= 5;
    }
    // 80 bits are two groups of 40: five bytes, eight characters.
    for (int group = 0; group < 2; group++) {
        uint64_t bits = 0;
        for (int i = 0; i < 5; i++) {
            bits = bits << 8 | entropy[5 * group + i];
        }
        for (int i = 7; i >= 0; i--) {
            out[10 + 8 * group + i] = crockford[bits & 31u];
            bits >>= 5;
        }
    }
}

void id_derived(const char *prefix, int64_t at_us, const uint8_t entropy[10], char out[ID_SIZE])
{
    size_t length = strlen(prefix);
    assert(length + ULID_LEN < ID_SIZE);
    memcpy(out, prefix, length);
    uint64_t ms = at_us < 0 ? 0 : (uint64_t)at_us / 1000;
    write_ulid(ms & UINT64_C(0xffffffffffff), entropy, out + length);
    out[length + ULID_LEN] = '\0';
}

static void increment(uint8_t entropy[ENTROPY_LEN])
{
    for (int i = ENTROPY_LEN - 1; i >= 0; i--) {
        entropy[i]++;
        if (entropy[i] != 0) {
            return;
        }
    }
}

void id_new(const char *prefix, int64_t now_us, char out[ID_SIZE])
{
    static _Thread_local int64_t last_ms = -1;
    static _Thread_local uint8_t entropy[ENTROPY_LEN];
    if (now_us / 1000 == last_ms) {
        increment(entropy);
    } else {
        last_ms = now_us / 1000;
        random_bytes(entropy, sizeof entropy);
        entropy[0] &= 0x7f; // room to count up without an overflow
    }
    id_derived(prefix, now_us, entropy, out);
}

bool id_parse(Str id, const char *prefix, int64_t *ret_ms)
{
    Str head = str_from(prefix);
    if (id.len != head.len + ULID_LEN || !str_starts(id, head)) {
        return false;
    }
    const char *ulid = id.ptr + head.len;
    if (ulid[0] > '7') {
        return false; // 26 characters hold 130 bits: the first must not pass the 128th
    }
    int64_t ms = 0;
    for (size_t i = 0; i < ULID_LEN; i++) {
        const char *digit = ulid[i] == '\0' ? NULL : strchr(crockford, ulid[i]);
        if (digit == NULL) {
            return false;
        }
        ms = i < 10 ? ms << 5 | (digit - crockford) : ms;
    }
    if (ret_ms != NULL) {
        *ret_ms = ms;
    }
    return true;
}

bool id_is_key(Str text)
{
    if (text.len == 0 || text.len > 64) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool allowed = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!allowed) {
            return false;
        }
    }
    return true;
}

bool id_is_tenant(Str text)
{
    return id_is_key(text) && text.len <= 32 && text.ptr[0] != '-' && text.ptr[0] != '_';
}

void base64url_encode(const void *data, size_t len, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const uint8_t *from = data;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | from[i];
        held += 8;
        while (held >= 6) {
            held -= 6;
            *out++ = digits[bits >> held & 63u];
        }
    }
    if (held > 0) {
        *out++ = digits[bits << (6 - held) & 63u];
    }
    *out = '\0';
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64url_decode(Str text, uint8_t *out, size_t out_size, size_t *ret_len)
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        int value = c == '-' ? 62 : c == '_' ? 63 : c == '+' || c == '/' ? -1 : base64_value(c);
        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            if (len == out_size) {
                return false;
            }
            held -= 8;
            out[len++] = (uint8_t)(bits >> held);
            bits &= (1U << held) - 1;
        }
    }
    *ret_len = len;
    return bits == 0 && held < 6;
}

bool base64_decode(Str text, uint8_t *out, size_t out_size, size_t *ret_len)
{
    size_t padding = str_ends(text, STR("==")) ? 2 : str_ends(text, STR("=")) ? 1 : 0;
    size_t digits = text.len - padding;
    size_t need = text.len / 4 * 3 - padding;
    if (text.len % 4 != 0 || need > out_size) {
        return false;
    }
    uint32_t bits = 0;
    unsigned held = 0;
    size_t length = 0;
    for (size_t i = 0; i < digits; i++) {
        int value = base64_value(text.ptr[i]);
        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out[length++] = (uint8_t)(bits >> held);
        }
    }
    if ((bits & ((1u << held) - 1u)) != 0) {
        return false; // two texts must not mean the same bytes
    }
    *ret_len = length;
    return true;
}

void hex_encode(const void *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *from = data;
    for (size_t i = 0; i < len; i++) {
        *out++ = digits[from[i] >> 4];
        *out++ = digits[from[i] & 15u];
    }
    *out = '\0';
}

int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool hex_decode(Str text, uint8_t *out, size_t out_size, size_t *ret_len)
{
    if (text.len % 2 != 0 || text.len / 2 > out_size) {
        return false;
    }
    for (size_t i = 0; i < text.len / 2; i++) {
        int high = hex_value(text.ptr[2 * i]);
        int low = hex_value(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    *ret_len = text.len / 2;
    return true;
}
