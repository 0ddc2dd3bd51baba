// SPDX-License-Identifier: Apache-2.0
// The tags and entities of HTML, as html_text.c walks over them: no tree, any bytes.
#pragma once

#include "common/base/str.h"

enum { NAME_MAX_LEN = 16 };

// What a tag does to the text.
typedef enum TagKind {
    TAG_OTHER,
    TAG_VOID, // has no end tag, and no meaning here
    TAG_BREAK,
    TAG_PARAGRAPH,
    TAG_BLOCK,
    TAG_ROW,
    TAG_CELL,
    TAG_BULLETS,
    TAG_NUMBERS,
    TAG_ITEM,
    TAG_LINK,
    TAG_IMAGE,
    TAG_RULE,
    TAG_PRE,
    TAG_QUOTE,
    TAG_UNSEEN, // with all that is in it
} TagKind;

typedef struct Tag {
    char name[NAME_MAX_LEN]; // lower case; longer ones are cut, and are none that matters
    TagKind kind;
    bool closes;
    Str attributes;
} Tag;

bool html_is_blank(char c);
// Of "&amp;..."; *ret_len is its length, 0 when it is none.
uint32_t html_entity(Str text, size_t *ret_len);
bool html_begins_tag(Str html, size_t at);
// Behind the tag that begins at `from`; its end is the first '>' outside of quotes.
size_t html_read_tag(Str html, size_t from, Tag *tag);
bool html_attribute(const Tag *tag, const char *wanted, Str *ret);
bool html_is_void(const Tag *tag);
bool html_is_hidden(const Tag *tag);
// Behind the first `text` from `from` on; the end when there is none.
size_t html_find(Str html, size_t from, const char *text);
// Behind the end of an element that is not shown, with all that is in it.
size_t html_skip_element(Str html, size_t at, const char *name);
