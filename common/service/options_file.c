// SPDX-License-Identifier: Apache-2.0
#include "common/service/options_file.h"

#include "common/service/options.h"

void options_file_init(OptionsFile *file, Str text)
{
    file->rest = text;
    file->line = 0;
    buf_init(&file->unquoted, OPTION_TEXT_MAX);
}

void options_file_done(OptionsFile *file)
{
    buf_done(&file->unquoted);
}

static bool is_name(Str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool digit = c >= '0' && c <= '9';
        if (!(c >= 'A' && c <= 'Z') && c != '_' && !(digit && i > 0)) {
            return false;
        }
    }
    return text.len > 0;
}

// `quoted` begins with a quote.
static bool unquote(OptionsFile *file, Str quoted, Error *err)
{
    buf_clear(&file->unquoted);
    for (size_t i = 1; i < quoted.len; i++) {
        char c = quoted.ptr[i];
        if (c == '"') {
            return i + 1 == quoted.len ||
                   error_set(
                       err, ERROR_CONFIG, "line %d: text after the closing quote", file->line);
        }
        if (c == '\\' && i + 1 < quoted.len) {
            c = quoted.ptr[++i];
            if (c != '"' && c != '\\') {
                return error_set(
                    err, ERROR_CONFIG,
                    "line %d: in quotes a backslash stands only before '\"' or '\\'", file->line);
            }
        }
        if (!buf_char(&file->unquoted, c)) {
            return error_set(
                err, ERROR_CONFIG, "line %d: the value has over %d bytes", file->line,
                OPTION_TEXT_MAX);
        }
    }
    return error_set(err, ERROR_CONFIG, "line %d: the closing quote is missing", file->line);
}

static bool parse_line(OptionsFile *file, Str line, Str *ret_name, Str *ret_value, Error *err)
{
    ptrdiff_t equals = str_find(line, '=');
    Str name = equals < 0 ? line : str_trim(str_slice(line, 0, (size_t)equals));
    if (equals < 0 || !is_name(name)) {
        return error_set(
            err, ERROR_CONFIG, "line %d: expected NAME=value, a '# comment' or an empty line",
            file->line);
    }
    Str value = str_trim(str_slice(line, (size_t)equals + 1, line.len));
    if (value.len > 0 && value.ptr[0] == '"') {
        if (!unquote(file, value, err)) {
            return false;
        }
        value = buf_view(&file->unquoted);
    }
    *ret_name = name;
    *ret_value = value;
    return true;
}

bool options_file_next(OptionsFile *file, Str *ret_name, Str *ret_value, Error *err)
{
    error_clear(err);
    Str line;
    while (str_split(&file->rest, '\n', &line)) {
        file->line++;
        line = str_trim(line);
        if (line.len > 0 && line.ptr[0] != '#') {
            return parse_line(file, line, ret_name, ret_value, err);
        }
    }
    return false;
}

void options_file_write(Buf *out, Str name, const char *value)
{
    buf_str(out, name);
    buf_cstr(out, "=\"");
    for (const char *c = value; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            buf_char(out, '\\');
        }
        buf_char(out, *c);
    }
    buf_cstr(out, "\"\n");
}
