// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // endian.h
#include "common/parquet/row_digest.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/codec/hash.h"

// Beside its text a value has a tab, and what its last piece writes behind it.
enum { VALUE_ROOM = 32, WORDS = PARQUET_DIGEST_LEN / 8 };

struct RowDigest {
    ParquetType types[PARQUET_COLUMNS_MAX];
    size_t count;
    Buf text;
    uint64_t rows;
    uint64_t sum[WORDS]; // the highest first
};

RowDigest *row_digest_new(const ParquetColumn *columns, size_t count)
{
    RowDigest *d = xcalloc(1, sizeof *d);
    d->count = count;
    for (size_t i = 0; i < count; i++) {
        d->types[i] = columns[i].type;
    }
    buf_init(&d->text, PARQUET_COLUMNS_MAX * (2 * (size_t)PARQUET_VALUE_MAX + VALUE_ROOM));
    return d;
}

void row_digest_free(RowDigest *d)
{
    if (d != NULL) {
        buf_done(&d->text);
        free(d);
    }
}

// ---- the text ----

// The eight digits of a number below 10^8, the first in the lowest byte.
static uint64_t eight_digits(uint64_t number)
{
    uint64_t halves = number / 10000 | number % 10000 << 32;
    uint64_t hundreds = halves * 10486 >> 20 & UINT64_C(0x0000007f0000007f);
    uint64_t pairs = hundreds | (halves - 100 * hundreds) << 16;
    uint64_t tens = pairs * 103 >> 10 & UINT64_C(0x000f000f000f000f);
    return (tens | (pairs - 10 * tens) << 8) + UINT64_C(0x3030303030303030);
}

enum { DIGITS = 8, DIGITS_VALUE = 100000000 };

static char *put_digits(char *out, uint64_t number)
{
    uint64_t digits = htole64(eight_digits(number));
    memcpy(out, &digits, sizeof digits);
    return out + DIGITS;
}

// Without leading zeros; all eight bytes are written, the rest behind what counts.
static char *put_short(char *out, uint64_t number)
{
    uint64_t digits = eight_digits(number);
    uint64_t any = (digits - UINT64_C(0x3030303030303030)) | UINT64_C(1)
                                                                 << 56; // the last one stays
    unsigned zeros = (unsigned)__builtin_ctzll(any) / 8;
    digits = htole64(digits >> 8 * zeros);
    memcpy(out, &digits, sizeof digits);
    return out + DIGITS - zeros;
}

static char *put_number(char *out, int64_t value)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0) {
        *out++ = '-';
    }
    if (rest < DIGITS_VALUE) {
        return put_short(out, rest);
    }
    uint64_t high = rest / DIGITS_VALUE;
    if (high < DIGITS_VALUE) {
        out = put_short(out, high);
    } else {
        out = put_short(out, high / DIGITS_VALUE);
        out = put_digits(out, high % DIGITS_VALUE);
    }
    return put_digits(out, rest % DIGITS_VALUE);
}

typedef uint8_t Bytes __attribute__((vector_size(16)));

// The first of them that is to be escaped; 16: none.
static size_t first_special(Bytes bytes)
{
    Bytes special = (Bytes)(bytes == '\n') | (Bytes)(bytes == '\t') | (Bytes)(bytes == '\\');
    uint64_t words[2];
    memcpy(words, &special, sizeof words);
    if ((words[0] | words[1]) == 0) {
        return sizeof bytes;
    }
    size_t skip = words[0] == 0 ? 1 : 0;
    return 8 * skip + (size_t)__builtin_ctzll(le64toh(words[skip])) / 8;
}

static char *put_special(char *out, char c)
{
    *out++ = '\\';
    *out++ = (char)(c == '\n' ? 'n' : c == '\t' ? 't' : c);
    return out;
}

// 16 bytes are written at a time, some of them behind what counts.
static char *put_escaped(char *out, Str value)
{
    for (size_t at = 0; at < value.len;) {
        Bytes bytes = {0};
        size_t len = value.len - at;
        if (len < sizeof bytes) {
            memcpy(&bytes, value.ptr + at, len);
        } else {
            memcpy(&bytes, value.ptr + at, sizeof bytes);
            len = sizeof bytes;
        }
        size_t plain = first_special(bytes);
        memcpy(out, &bytes, sizeof bytes);
        if (plain == sizeof bytes) {
            out += len;
            at += len;
        } else {
            out = put_special(out + plain, value.ptr[at + plain]);
            at += plain + 1;
        }
    }
    return out;
}

static char *put_value(char *out, ParquetType type, const ParquetValue *value)
{
    switch (type) {
    case PARQUET_BOOL:
        memcpy(out, value->number != 0 ? "true" : "false", 5);
        return out + (value->number != 0 ? 4 : 5);
    case PARQUET_I32:
    case PARQUET_I64:
        return put_number(out, value->number);
    case PARQUET_STRING:
    case PARQUET_BYTES:
        break;
    }
    return put_escaped(out, value->bytes);
}

static void make_text(RowDigest *d, const ParquetValue *values)
{
    size_t room = 0, count = 0;
    for (size_t i = 0; i < d->count; i++) {
        count = values[i].null ? count : i + 1;
        room += VALUE_ROOM + (values[i].null ? 0 : 2 * values[i].bytes.len);
    }
    buf_clear(&d->text);
    if (!buf_reserve(&d->text, room)) {
        abort(); // larger than any row that a writer takes
    }
    char *out = d->text.ptr;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *out++ = '\t';
        }
        if (values[i].null) {
            *out++ = '\\';
            *out++ = 'N';
        } else {
            out = put_value(out, d->types[i], &values[i]);
        }
    }
    d->text.len = (size_t)(out - d->text.ptr);
}

// ---- sums ----

static void load_words(const uint8_t bytes[PARQUET_DIGEST_LEN], uint64_t words[WORDS])
{
    memcpy(words, bytes, PARQUET_DIGEST_LEN);
    for (int i = 0; i < WORDS; i++) {
        words[i] = be64toh(words[i]);
    }
}

static void store_words(const uint64_t words[WORDS], uint8_t bytes[PARQUET_DIGEST_LEN])
{
    for (int i = 0; i < WORDS; i++) {
        uint64_t word = htobe64(words[i]);
        memcpy(bytes + 8 * i, &word, sizeof word);
    }
}

static void add_words(uint64_t into[WORDS], const uint64_t more[WORDS])
{
    uint64_t carry = 0;
    for (int i = WORDS - 1; i >= 0; i--) {
        uint64_t sum = into[i] + more[i];
        uint64_t overflow = sum < more[i] ? 1 : 0;
        into[i] = sum + carry;
        carry = overflow + (into[i] < carry ? 1 : 0);
    }
}

void row_digest_add(RowDigest *d, const ParquetValue *values)
{
    make_text(d, values);
    uint8_t digest[SHA256_LEN];
    uint64_t words[WORDS];
    sha256(buf_view(&d->text), digest);
    load_words(digest, words);
    add_words(d->sum, words);
    d->rows++;
}

ParquetTotals row_digest_totals(const RowDigest *d)
{
    ParquetTotals totals = {.rows = d->rows};
    store_words(d->sum, totals.row_sum);
    return totals;
}

Str row_digest_text(const RowDigest *d)
{
    return buf_view(&d->text);
}

void parquet_totals_add(ParquetTotals *into, const ParquetTotals *more)
{
    uint64_t sum[WORDS], words[WORDS];
    load_words(into->row_sum, sum);
    load_words(more->row_sum, words);
    add_words(sum, words);
    store_words(sum, into->row_sum);
    into->rows += more->rows;
}

bool parquet_totals_equal(const ParquetTotals *a, const ParquetTotals *b)
{
    return a->rows == b->rows && memcmp(a->row_sum, b->row_sum, PARQUET_DIGEST_LEN) == 0;
}
