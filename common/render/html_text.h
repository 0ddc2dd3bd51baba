// SPDX-License-Identifier: Apache-2.0
// HTML to plain text, for mails whose template has no text of its own: paragraphs, lists, tables,
// links and quotations as one would type them. One pass, no tree; not a sanitiser. Any bytes
// give some text. Pure.
#pragma once

#include "common/base/buf.h"

// Appends to `out`; a text that does not fit is cut and `out->full` is set.
void html_to_text(Str html, Buf *out);

// Behind the start tag of that name ("body"), or -1 when there is none.
ptrdiff_t html_after_tag(Str html, const char *name);
// Where the last "</body" begins, in any case; the end when there is none.
size_t html_end_of_body(Str html);
