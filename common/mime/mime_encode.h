// SPDX-License-Identifier: Apache-2.0
// The encodings of e-mail: quoted-printable, base64 (RFC 2045), encoded words (RFC 2047), folding
// (RFC 5322). Pure bytes to bytes; mime.c decides which header holds what. Law: output is
// ASCII, lines end in CRLF and are never longer than 998 bytes.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

typedef enum MimeEncoding { MIME_7BIT, MIME_QUOTED_PRINTABLE, MIME_BASE64 } MimeEncoding;

enum { MIME_LINE_MAX = 76 };

// 7bit for plain ASCII in short lines; base64 when more than a sixth is not ASCII (it is then the
// shorter one).
MimeEncoding mime_choose(Str text);
const char *mime_encoding_name(MimeEncoding encoding);

// Appends `text` in that encoding, its line breaks (LF or CRLF) as CRLF. Each ends with a line
// break or in mid-line, as the text does. false: `out` is full.
bool mime_encode(MimeEncoding encoding, Str text, Buf *out);

// One run of base64 with padding, without line breaks.
bool mime_base64(Str data, Buf *out);

// Bytes as base64 in lines of 76, each ended.
bool mime_base64_lines(Str bytes, Buf *out);

// Appends "Name: value" CRLF without the spaces at the value's ends. ASCII is folded between words;
// encoded words are written when the value is not ASCII, could be read as an encoded word, or has a
// word that no line can hold. ERROR_PERMANENT "header 'Subject' has a line break", "... is not
// UTF-8".
bool mime_header_text(const char *name, Str value, Buf *out, Error *err);
// Appends "Name: display <address>" CRLF. The address has been checked; display may be empty.
bool mime_header_mailbox(const char *name, Str display, Str address, Buf *out, Error *err);
// A further one of the same header, on a line of its own: "display <address>", without the CRLF.
bool mime_mailbox(const char *name, Str display, Str address, Buf *out, Error *err);
// "Name: value" CRLF for a value that we made ourselves.
bool mime_header_plain(const char *name, const char *value, Buf *out);
