// SPDX-License-Identifier: Apache-2.0
#include "services/cli/init/conf_merge.h"

#include "common/codec/hash.h"
#include "common/service/options_file.h"

enum { CONF_MAX = 256 * 1024, SUM_BYTES = 6, SUM_SIZE = SUM_BYTES * 2 + 1 };

#define FIRST_LINE "# written by stentor init; --renew writes it again and keeps what you changed"
#define FIRST_LINE_BEFORE "# written by stentor init"
#define SUMS "# as written:"

typedef struct Assignment {
    Str name;
    Str value;
} Assignment;

// ---- sums ----

static void sum_of(Str text, char ret[SUM_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t whole[SHA256_LEN];
    sha256(text, whole);
    for (size_t i = 0; i < SUM_BYTES; i++) {
        ret[i * 2] = digits[whole[i] >> 4];
        ret[i * 2 + 1] = digits[whole[i] & 15];
    }
    ret[SUM_SIZE - 1] = '\0';
}

// " NAME=sum" in the line of the sums. *ret: the sum; false: the file was written without this one.
static bool find_sum(Str sums, Str name, Str *ret)
{
    Str word = STR_EMPTY;
    while (str_split(&sums, ' ', &word)) {
        Str of = STR_EMPTY;
        if (str_split(&word, '=', &of) && str_eq(of, name)) {
            *ret = word;
            return true;
        }
    }
    return false;
}

static Str line_of_sums(Str text)
{
    Str line = STR_EMPTY;
    while (str_split(&text, '\n', &line)) {
        if (str_starts(line, STR(SUMS))) {
            return str_trim(str_slice(line, sizeof SUMS - 1, line.len));
        }
    }
    return STR_EMPTY;
}

static bool is_head(Str line)
{
    return str_starts(line, STR(FIRST_LINE_BEFORE)) || str_starts(line, STR(SUMS));
}

// ---- assignments ----

// false: a comment, an empty line, or one that no program will take.
static bool read_line(Str line, Arena *arena, Assignment *ret)
{
    OptionsFile file;
    Str name = STR_EMPTY, value = STR_EMPTY;
    Error ignored = {0};
    options_file_init(&file, line);
    bool ok = options_file_next(&file, &name, &value, &ignored);
    *ret = (Assignment){.name = name, .value = ok ? arena_str(arena, value) : STR_EMPTY};
    options_file_done(&file);
    return ok;
}

static bool find_setting(Str text, Str name, Arena *arena, Assignment *ret)
{
    Str line = STR_EMPTY;
    while (str_split(&text, '\n', &line)) {
        if (read_line(line, arena, ret) && str_eq(ret->name, name)) {
            return true;
        }
    }
    return false;
}

static size_t count_lines(Str text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.len; i++) {
        lines += text.ptr[i] == '\n';
    }
    return lines;
}

void conf_head(Buf *out, Str lines)
{
    Arena *arena = arena_new(0);
    Str line = STR_EMPTY;
    Assignment setting;
    buf_cstr(out, FIRST_LINE "\n" SUMS);
    while (str_split(&lines, '\n', &line)) {
        if (read_line(line, arena, &setting)) {
            char sum[SUM_SIZE];
            sum_of(setting.value, sum);
            buf_printf(out, " " STR_FMT "=%s", STR_ARG(setting.name), sum);
        }
    }
    buf_char(out, '\n');
    arena_free(arena);
}

// ---- merging ----

typedef struct Merge {
    Str sums; // of the current file
    Str fresh;
    Arena *arena;
    Buf out;
    ConfMerge *ret;
} Merge;

static void keep(Merge *merge, Str name)
{
    merge->ret->kept[merge->ret->n_kept++] = arena_cstr(merge->arena, name);
}

static void put_line(Merge *merge, Str line)
{
    buf_str(&merge->out, line);
    buf_char(&merge->out, '\n');
}

static void merge_setting(Merge *merge, Str line, const Assignment *setting)
{
    Str written = STR_EMPTY;
    Assignment fresh;
    char sum[SUM_SIZE];
    sum_of(setting->value, sum);
    bool ours = find_sum(merge->sums, setting->name, &written) && str_eq(written, str_from(sum));
    bool wanted = find_setting(merge->fresh, setting->name, merge->arena, &fresh);
    if (wanted && str_eq(fresh.value, setting->value)) {
        put_line(merge, line);
    } else if (!ours) {
        put_line(merge, line);
        keep(merge, setting->name);
    } else if (wanted) {
        options_file_write(&merge->out, fresh.name, arena_cstr(merge->arena, fresh.value));
    }
}

static void put_head(Merge *merge)
{
    Str rest = merge->fresh, line = STR_EMPTY;
    while (str_split(&rest, '\n', &line) && is_head(line)) {
        put_line(merge, line);
    }
}

static void merge_current(Merge *merge, Str current)
{
    Str line = STR_EMPTY;
    while (str_split(&current, '\n', &line)) {
        Assignment setting;
        if (read_line(line, merge->arena, &setting)) {
            merge_setting(merge, line, &setting);
        } else if (!is_head(line)) {
            put_line(merge, line);
        }
    }
}

// What the current file does not have: new in this release, or deleted by the operator.
static void add_missing(Merge *merge, Str current)
{
    Str rest = merge->fresh, line = STR_EMPTY, sum = STR_EMPTY;
    while (str_split(&rest, '\n', &line)) {
        Assignment setting, there;
        if (!read_line(line, merge->arena, &setting) ||
            find_setting(current, setting.name, merge->arena, &there)) {
            continue;
        }
        if (find_sum(merge->sums, setting.name, &sum)) {
            keep(merge, setting.name);
        } else {
            put_line(merge, line);
        }
    }
}

ConfMerge conf_merge(Str current, Str fresh, Arena *arena)
{
    ConfMerge ret = {.text = STR_EMPTY};
    Merge merge = {.sums = line_of_sums(current), .fresh = fresh, .arena = arena, .ret = &ret};
    size_t names = count_lines(current) + count_lines(fresh);
    ret.kept = arena_array(arena, names, sizeof *ret.kept);
    buf_init(&merge.out, CONF_MAX);
    put_head(&merge);
    current = str_ends(current, STR("\n")) ? str_slice(current, 0, current.len - 1) : current;
    merge_current(&merge, current);
    add_missing(&merge, current);
    // A file that is too long to be one of ours stays as it is.
    ret.text = merge.out.full ? current : arena_str(arena, buf_view(&merge.out));
    buf_done(&merge.out);
    return ret;
}

// ---- files of another grammar ----

void conf_whole_head(Buf *out, Str lines)
{
    char sum[SUM_SIZE];
    sum_of(lines, sum);
    buf_printf(out, FIRST_LINE "\n" SUMS " %s\n", sum);
}

static Str without_head(Str text)
{
    Str rest = text, line = STR_EMPTY;
    while (str_split(&rest, '\n', &line) && is_head(line)) {
        text = rest;
    }
    return text;
}

bool conf_whole_is_ours(Str current, Str fresh)
{
    char sum[SUM_SIZE];
    Str lines = without_head(current);
    Str written = line_of_sums(current);
    sum_of(lines, sum);
    return str_eq(written, str_from(sum)) ||
           (written.len == 0 && str_eq(lines, without_head(fresh)));
}
