// SPDX-License-Identifier: Apache-2.0
#include "common/vendor/vendor_voice.h"

#include "common/base/buf.h"

enum { ESCAPED_MAX = 1048576 };

// The voices that Twilio and Vonage have both, the first of a language for its other regions.
static const char *const LANGUAGES[] = {
    "da-DK", "de-DE", "en-US", "en-GB", "en-AU", "en-IN", "es-ES", "es-MX", "es-US",
    "fr-FR", "fr-CA", "is-IS", "it-IT", "ja-JP", "ko-KR", "nb-NO", "nl-NL", "pl-PL",
    "pt-BR", "pt-PT", "ro-RO", "ru-RU", "sv-SE", "tr-TR", "cy-GB"};

static void put_character(Buf *out, char c)
{
    if (c == '<') {
        buf_cstr(out, "&lt;");
    } else if (c == '>') {
        buf_cstr(out, "&gt;");
    } else if (c == '&') {
        buf_cstr(out, "&amp;");
    } else {
        buf_char(out, (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c);
    }
}

Str vendor_voice_escape(Str text, Arena *arena)
{
    Buf out;
    buf_init(&out, ESCAPED_MAX);
    for (size_t i = 0; i < text.len; i++) {
        put_character(&out, text.ptr[i]);
    }
    Str escaped = arena_str(arena, buf_view(&out));
    buf_done(&out);
    return escaped;
}

Str vendor_voice_language(Str locale, Arena *arena)
{
    if (locale.len == 0) {
        return STR_EMPTY;
    }
    char *name = arena_alloc(arena, locale.len);
    size_t language = locale.len;
    for (size_t i = 0; i < locale.len; i++) {
        name[i] = (char)(locale.ptr[i] == '_' ? '-' : locale.ptr[i]);
        language = name[i] == '-' && i < language ? i : language;
    }
    Str whole = {name, locale.len}, found = STR_EMPTY;
    Str prefix = str_slice(whole, 0, language);
    bool norwegian = str_eq_nocase(prefix, STR("no")) || str_eq_nocase(prefix, STR("nn"));
    prefix = norwegian ? STR("nb") : prefix;
    for (size_t i = 0; i < sizeof LANGUAGES / sizeof *LANGUAGES; i++) {
        Str one = str_from(LANGUAGES[i]);
        if (str_eq_nocase(one, whole)) {
            return one;
        }
        if (found.len == 0 && str_eq_nocase(str_slice(one, 0, 2), prefix)) {
            found = one;
        }
    }
    return found.len > 0 ? found : whole;
}
