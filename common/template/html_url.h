// SPDX-License-Identifier: Apache-2.0
// HtmlUrl: does a value that was just written into HTML make a URL that may run a script? Asked of
// what is about to leave, so it does not matter which blocks, partials and values a URL is made of.
// Not a sanitiser: literal text of the template and the markup inside of a raw value are the
// author's. Pure. Not public: used inside common/template.
#pragma once

#include "common/base/str.h"

typedef enum HtmlState {
    HTML_TEXT,
    HTML_TAG_OPEN,
    HTML_END_TAG_OPEN,
    HTML_TAG_NAME,
    HTML_BEFORE_NAME,
    HTML_NAME,
    HTML_AFTER_NAME,
    HTML_BEFORE_VALUE,
    HTML_VALUE_DOUBLE, // in "
    HTML_VALUE_SINGLE, // in '
    HTML_VALUE_BARE,
    HTML_MARKUP,      // behind <!
    HTML_MARKUP_DASH, // behind <!-
    HTML_COMMENT,
    HTML_BOGUS,  // to the next >
    HTML_SCRIPT, // to </script
} HtmlState;

// Follows a growing text as far as it is asked to; begin with {.at = where the HTML begins}.
typedef struct HtmlScan {
    size_t at;
    HtmlState state;
    size_t tag_at;
    size_t name_at; // of the attribute
    size_t name_len;
    size_t value_at; // where its value, or a comment's text, begins
} HtmlScan;

// `html` is everything so far, with the value from `from` on. true: it ends the scheme of a URL, at
// the beginning of an attribute that takes one, and the scheme is none of http, https, mailto, tel,
// cid. Adds to *steps what it looks at.
bool html_url_is_unsafe(HtmlScan *scan, Str html, size_t from, uint32_t *steps);
// Is there the beginning of a URL, in an attribute that takes one, in front of `from`?
bool html_url_has_begun(HtmlScan *scan, Str html, size_t from, uint32_t *steps);
// May the text, behind a value, end the scheme that the value began ("{{a}}:")?
bool html_url_ends_scheme(Str text);
