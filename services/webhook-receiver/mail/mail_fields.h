// SPDX-License-Identifier: Apache-2.0
// Blocks of header-like fields: message/delivery-status (RFC 3464), message/feedback-report (RFC
// 5965), text/rfc822-headers. Tolerant: bare LF, folded lines, blocks without the blank line
// between them; what is no field is passed over. Pure.
#pragma once

#include "common/base/arena.h"

typedef struct MailField {
    Str name;   // as written
    Str value;  // unfolded, trimmed
    bool first; // of its block: a blank line stood before it, or nothing
} MailField;

// Cuts the next field from *rest; its value lives in `arena` when it was folded. false: there is
// none.
bool mail_field_next(Str *rest, Arena *arena, MailField *ret);
