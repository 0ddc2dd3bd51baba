// SPDX-License-Identifier: Apache-2.0
// What a recipient says by one word: STOP and its like in the languages that vendors know, whatever
// the tenant's own are, for a recipient writes in the recipient's. Pure.
#pragma once

#include "common/base/str.h"

typedef enum ReplyWord {
    REPLY_WORD_NONE,
    REPLY_WORD_STOP,
    REPLY_WORD_START,
    REPLY_WORD_HELP
} ReplyWord;

// Of a whole reply: a word among others is none. Case, blanks and a '.' or '!' at the end do not
// count.
ReplyWord reply_word(Str text);
