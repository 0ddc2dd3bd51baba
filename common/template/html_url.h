// SPDX-License-Identifier: Apache-2.0
// HtmlUrl: does a value that was just written into HTML make a URL that may run a script, or CSS or
// code that does? Asked of what is about to leave, so it does not matter which blocks, partials and
// values it is made of.
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
    HTML_STYLE,  // to </style
} HtmlState;

// Follows a growing text as far as it is asked to; begin with {.at = where the HTML begins}.
typedef struct HtmlScan {
    size_t at;
    HtmlState state;
    size_t tag_at;
    size_t name_at; // of the attribute
    size_t name_len;
    size_t value_at; // where its value, the text of a comment or of a <style> begins
    bool has_code;   // the template has said so (html_url_has_code)
} HtmlScan;

// `html` is everything so far, with the value from `from` on; `raw`: it was not escaped. true: it
// ends the scheme of a URL that is none of http, https, mailto, tel, cid, where one begins (an
// attribute that takes one, url() in CSS, a refresh); it makes CSS that runs (html_css.h); it
// stands in an attribute that is code (onclick, srcdoc) and is more than plain text. Adds to *steps
// what it looks at.
bool html_url_is_unsafe(HtmlScan *scan, Str html, size_t from, bool raw, uint32_t *steps);
// Is there the beginning of a URL, in an attribute that takes one, in front of `from`?
bool html_url_has_started(HtmlScan *scan, Str html, size_t from, uint32_t *steps);
// May the text, behind a value, end the scheme that the value began ("{{a}}:")?
bool html_url_ends_scheme(Str text);
// May the text begin an attribute that is code? Set in HtmlScan, it has every value looked at.
bool html_url_has_code(Str text);
