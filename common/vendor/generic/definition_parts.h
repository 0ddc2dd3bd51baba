// SPDX-License-Identifier: Apache-2.0
// A compiled definition: what definition_read.c makes, and definition_build.c, definition_answer.c
// and definition_callback.c use.
#pragma once

#include <jansson.h>

#include "common/template/template.h"
#include "common/vendor/callback_read.h"
#include "common/vendor/generic/definition.h"

typedef enum BodyKind { BODY_JSON, BODY_FORM, BODY_TEXT } BodyKind;

// A template and where it stands in the document, for errors.
typedef struct Slot {
    const char *place; // "request.json.to"
    Template *tpl;
} Slot;

typedef struct NamedSlot {
    const char *name;
    Slot slot;
} NamedSlot;

typedef struct ReplyRow {
    const char *code; // "404", "4xx", or the vendor's own
    SendState state;
    ReplyClass reply;
} ReplyRow;

typedef struct ReplyTable {
    ReplyRow rows[DEFINITION_ROWS_MAX];
    size_t count;
} ReplyTable;

// A JSON pointer (RFC 6901); "": the whole document. NULL: there is none.
typedef const char *Pointer;

typedef struct CallbackPart {
    bool there;
    const char *header, *prefix;
    bool sha1, base64;
    Pointer list, id, notification, attempt, status, time, text, address;
    CallbackKind kinds[DEFINITION_ROWS_MAX];
    size_t kind_count;
} CallbackPart;

struct VendorDefinition {
    unsigned holders;
    Arena *arena; // holds this
    Str document;
    json_t *root;
    Channel channel;
    const char *method;
    Str origin;
    Slot url; // what follows the origin
    NamedSlot headers[DEFINITION_HEADERS_MAX];
    size_t header_count;
    BodyKind body;
    const json_t *json;    // BODY_JSON: its strings are the leaves, in its order
    const char *body_type; // BODY_TEXT
    NamedSlot leaves[DEFINITION_TEMPLATES_MAX]; // of BODY_FORM with their names; of BODY_TEXT one
    size_t leaf_count;
    size_t template_count; // all of them
    Pointer id, code, text;
    ReplyTable statuses, codes;
    bool has_otherwise;
    ReplyRow otherwise; // of a code that is in no row
    int64_t key_known_s;
    CallbackPart callback;
};

// ERROR_PERMANENT "definition.<place>: ...".
bool definition_fault(Error *err, const char *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool definition_read_answer(VendorDefinition *definition, const json_t *answer, Error *err);
bool definition_read_callback(VendorDefinition *definition, const json_t *callback, Error *err);
// Only members that `names` lists, with blanks between. NULL-safe.
bool definition_check_members(
    const json_t *object, const char *place, const char *names, Error *err);
// A text, or not there (then *ret stays).
bool definition_take_text(
    const VendorDefinition *definition, const json_t *object, const char *place, const char *name,
    const char **ret, Error *err);
// The same, and a JSON pointer.
bool definition_take_pointer(
    const VendorDefinition *definition, const json_t *object, const char *place, const char *name,
    Pointer *ret, Error *err);

// What a pointer leads to; NULL: nothing, or it is NULL.
const json_t *pointer_get(const json_t *root, Pointer pointer);
// A text, or a whole number as text; empty: neither.
Str pointer_text(const json_t *root, Pointer pointer, Arena *arena);
// Any JSON; NULL: it is none, or too much.
json_t *definition_json(Str body, Arena *arena);

bool definition_build(
    const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
    VendorRequest *ret, Error *err);
void definition_read(const VendorAnswer *answer, Arena *arena, SendResult *ret);
