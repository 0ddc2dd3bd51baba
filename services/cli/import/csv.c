// SPDX-License-Identifier: Apache-2.0
#include "services/cli/import/csv.h"

#include <string.h>

typedef struct Scan {
    Str text;
    size_t at;
    bool at_end;
    Arena *arena;
    CsvRecord *record;
} Scan;

// From here to the end of the first line; what is wrong in it.
static CsvVerdict break_off(Scan *scan, const char *reason)
{
    ptrdiff_t end = str_find(scan->text, '\n');
    if (end < 0 && !scan->at_end && scan->text.len <= CSV_RECORD_MAX) {
        return CSV_MORE;
    }
    scan->record->count = 0;
    scan->record->bytes = end < 0 ? scan->text.len : (size_t)end + 1;
    scan->record->lines = end < 0 ? 0 : 1; // an endless line goes on in the next window
    scan->record->reason = reason;
    return CSV_BROKEN;
}

static CsvVerdict run_out(Scan *scan, const char *reason)
{
    if (scan->text.len > CSV_RECORD_MAX) {
        return break_off(scan, "longer than 65536 bytes, or a quote that is not closed");
    }
    return scan->at_end ? break_off(scan, reason) : CSV_MORE;
}

// Between the quotes; afterwards `at` is behind the closing one.
static CsvVerdict read_quoted(Scan *scan, Str *ret)
{
    size_t start = ++scan->at;
    size_t quotes = 0;
    while (scan->at < scan->text.len) {
        if (scan->text.ptr[scan->at] != '"') {
            scan->at++;
        } else if (scan->at + 1 == scan->text.len && !scan->at_end) {
            return run_out(scan, ""); // it may be the first of two
        } else if (scan->at + 1 < scan->text.len && scan->text.ptr[scan->at + 1] == '"') {
            scan->at += 2;
            quotes++;
        } else {
            break;
        }
    }
    if (scan->at == scan->text.len) {
        return run_out(scan, "a quote is not closed");
    }
    size_t len = scan->at++ - start;
    char *copy = arena_alloc(scan->arena, len);
    size_t out = 0;
    for (size_t i = 0; i < len; i++) {
        copy[out++] = scan->text.ptr[start + i];
        i += scan->text.ptr[start + i] == '"'; // the second of two
    }
    *ret = str_of(copy, len - quotes);
    return CSV_RECORD;
}

static CsvVerdict read_bare(Scan *scan, Str *ret)
{
    size_t start = scan->at;
    while (scan->at < scan->text.len) {
        char c = scan->text.ptr[scan->at];
        if (c == ',' || c == '\n') {
            break;
        }
        if (c == '"') {
            return break_off(scan, "a quote within a field that does not begin with one");
        }
        scan->at++;
    }
    Str text = str_slice(scan->text, start, scan->at);
    if (str_ends(text, STR("\r")) &&
        (scan->at == scan->text.len || scan->text.ptr[scan->at] == '\n')) {
        text.len--;
    }
    *ret = arena_str(scan->arena, text);
    return CSV_RECORD;
}

// After a field: true when another one follows. A verdict other than CSV_RECORD ends the record.
static bool read_border(Scan *scan, CsvVerdict *ret)
{
    if (scan->at < scan->text.len && scan->text.ptr[scan->at] == '\r') {
        scan->at++;
        if (scan->at < scan->text.len && scan->text.ptr[scan->at] != '\n') {
            *ret = break_off(scan, "a character after a closing quote");
            return false;
        }
    }
    if (scan->at == scan->text.len) {
        *ret = scan->at_end ? CSV_RECORD : run_out(scan, "");
        return false;
    }
    char c = scan->text.ptr[scan->at++];
    *ret =
        c == ',' || c == '\n' ? CSV_RECORD : break_off(scan, "a character after a closing quote");
    return c == ',';
}

CsvVerdict csv_read(Str window, bool at_end, Arena *arena, CsvRecord *ret)
{
    *ret = (CsvRecord){.reason = ""};
    Scan scan = {.text = window, .at_end = at_end, .arena = arena, .record = ret};
    CsvVerdict verdict = CSV_RECORD;
    if (window.len == 0) {
        return at_end ? CSV_END : CSV_MORE;
    }
    do {
        if (ret->count == CSV_FIELDS_MAX) {
            return break_off(&scan, "more than 64 fields");
        }
        bool quoted = scan.at < window.len && window.ptr[scan.at] == '"';
        Str *field = &ret->fields[ret->count++];
        verdict = quoted ? read_quoted(&scan, field) : read_bare(&scan, field);
    } while (verdict == CSV_RECORD && read_border(&scan, &verdict));
    if (verdict != CSV_RECORD) {
        return verdict;
    }
    if (scan.at > CSV_RECORD_MAX) {
        return break_off(&scan, "longer than 65536 bytes");
    }
    ret->bytes = scan.at;
    ret->lines = 0;
    for (size_t i = 0; i < scan.at; i++) {
        ret->lines += window.ptr[i] == '\n';
    }
    if (ret->count == 1 && ret->fields[0].len == 0 && window.ptr[0] != '"') {
        ret->count = 0;
    }
    return CSV_RECORD;
}
