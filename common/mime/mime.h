// SPDX-License-Identifier: Apache-2.0
// An e-mail as bytes: headers and a text, an HTML or a multipart/alternative body (RFC 5322,
// 2045-2047). No dot-stuffing and no envelope: these belong to SMTP. Pure and deterministic: the
// same mail gives the same bytes, so a resend after an unknown outcome is equal to the first and
// keeps its Message-ID. Law: no value from outside can begin a new header or a new part.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

enum {
    MIME_URL_MAX = 900,
    MIME_EXTRA_MAX = 400,
    MIME_BYTES_MAX = 40 * 1024 * 1024, // 25 MiB of files are 34 MiB of base64
    MIME_FILE_NAME_MAX = 128,
    MIME_TYPE_MAX = 100,
    MIME_CONTENT_ID_MAX = 100,
    MAIL_ADDRESS_MAX = 254,
    MAIL_LOCAL_MAX = 64
};

typedef struct MimeMailbox {
    Str name, address; // name may be empty
} MimeMailbox;

// A file that the mail carries.
typedef struct MimeFile {
    Str name;       // "invoice.pdf"; UTF-8, without control characters
    Str type;       // "application/pdf"; checked by mime_type_check()
    Str content_id; // of an image that the HTML shows (cid:...), without <>; empty: an attachment
    Str bytes;
} MimeFile;

typedef struct MimeMail {
    Str from_name, from; // name may be empty
    Str to_name, to;     // likewise
    const MimeMailbox *cc;
    size_t cc_count;
    Str reply_to; // empty: none
    Str subject;
    Str html, text;  // one of them may be empty
    Str id;          // "ntf_..." : the Message-ID's left side and the boundary
    Str id_domain;   // the Message-ID's right side
    int64_t date_us; // 0 or later
    // List-Unsubscribe, and for https and this machine also List-Unsubscribe-Post (RFC 2369, RFC
    // 8058); empty: none.
    Str unsubscribe_url;
    // Values without line breaks, made or checked before; empty: none.
    Str list_id;     // without <> (RFC 2919)
    Str feedback_id; // "a:b:c:d"
    Str test;        // X-Stentor-Test, of a test of a template version: "<key>/<version>"
    const MimeFile *files;
    size_t file_count;
    Str cfbl_address; // where complaints are reported to, as ARF (RFC 9477)
} MimeMail;

// Appends the whole message. ERROR_PERMANENT names the wrong header and quotes no personal data.
bool mime_compose(const MimeMail *mail, Buf *out, Error *err);
// Whether mime_compose() takes it, without the message: for a vendor that is given the fields. It
// clears the scratch and uses it for the headers. The same errors.
bool mime_check(const MimeMail *mail, Buf *scratch, Error *err);

// May List-Unsubscribe-Post go with this unsubscribe_url?
bool mime_takes_one_click(Str url);
// "type/subtype" of RFC 2045 tokens, without parameters, and no multipart or message.
bool mime_type_check(Str type);
// One line that is fit for a file's name: no path, no control or bidirectional character.
bool mime_file_name_check(Str name);
bool mime_content_id_check(Str id); // dot-atom characters and '@'

// A mailbox with a dot-string local part (RFC 5321 4.1.2; UTF-8 by RFC 6531): fit for <...> in a
// header and a command. *ret_utf8 (may be NULL): it is not ASCII. ERROR_PERMANENT "'to' is not an
// e-mail address: ...".
bool mail_address_check(const char *field, Str address, bool *ret_utf8, Error *err);
