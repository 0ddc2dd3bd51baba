// SPDX-License-Identifier: Apache-2.0
// Characters of HTML as a browser reads them, and what the scheme of a URL is. Pure. Not public:
// used by html_url and html_css.
#pragma once

#include "common/base/str.h"

bool html_is_space(uint32_t c);
bool html_is_letter(uint32_t c);
bool html_is_scheme_character(uint32_t c);
// What browsers, or some of them, pass over in a scheme.
bool html_is_passed_over(uint32_t c);
// The character at *at, which is not the end. Of the named ones those that matter in a scheme or in
// CSS; the others are an '&', which ends both.
uint32_t html_next_character(Str text, size_t *at);

typedef enum HtmlScheme {
    SCHEME_OPEN,    // the text ends before it does
    SCHEME_NONE,    // a relative URL, a fragment
    SCHEME_ODD,     // a ':' without a name before it
    SCHEME_ALLOWED, // http, https, mailto, tel, cid
    SCHEME_REFUSED,
} HtmlScheme;

// Of the URL that `text` begins with; *ret_end is behind its ':'.
HtmlScheme html_read_scheme(Str text, size_t *ret_end);
