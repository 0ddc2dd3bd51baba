// SPDX-License-Identifier: Apache-2.0
// E-mail addresses: the mailbox of RFC 5321 with a dot-string local part (UTF-8 allowed, RFC 6531).
// Not here: quoted local parts, address literals, display names, comments, groups: no real
// mail needs them and each is a way to smuggle something past a check. Law: what comes out is safe
// in a header, an SMTP command and a hash: no control character, bidirectional ones neither, no
// space, one '@'.
#pragma once

#include "common/base/arena.h"

enum { ADDRESS_LOCAL_MAX = 64, ADDRESS_MAX = 254, ADDRESS_REASON_SIZE = 120 };

// *ret_address is local@domain in `arena`: the local part as given, the domain lower-case as
// A-labels (IDNA2008, non-transitional). false: `reason` says what is wrong, as a text that fits
// after "field 'to': ".
bool address_parse(Str text, Arena *arena, Str *ret_address, char reason[ADDRESS_REASON_SIZE]);
// The name next to an address: one line, and nothing that makes it show as another. false:
// `reason`.
bool address_name_check(Str name, char reason[ADDRESS_REASON_SIZE]);
