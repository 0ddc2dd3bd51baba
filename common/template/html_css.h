// SPDX-License-Identifier: Apache-2.0
// What a value may not make of CSS, and of the address of a refresh. CSS runs a script, or fetches
// rules that do, in a few ways only: url() with a scheme that is not allowed, expression(),
// behavior, -moz-binding, @import; a backslash or a comment can hide each. Old mail programs know
// them all. Colours, sizes, fonts and whole declarations pass. Pure. Not public: used by html_url.
#pragma once

#include "common/base/str.h"

// `css` is some of it, with the value from `from` on; entities are decoded, as in an attribute.
bool html_css_is_unsafe(Str css, size_t from);
// Where in `css` the url() begins that is open at its end; -1: none is.
ptrdiff_t html_css_url(Str css);
// Where in the content of <meta http-equiv="refresh"> ("5; url=...") the URL begins; -1: it is no
// such content, or has no URL yet.
ptrdiff_t html_refresh_url(Str content);
