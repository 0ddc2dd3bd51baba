// SPDX-License-Identifier: Apache-2.0
// Value: what an expression of a template gives. Small, passed by value, never owned: it points
// into the variables, the template or the stack of the render. Not public: used inside
// common/template.
#pragma once

#include <jansson.h>

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/template/template.h"

typedef enum ValueKind {
    VALUE_NONE, // not there ("undefined")
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_ARRAY,
    VALUE_OBJECT,
    VALUE_MERGED, // a partial's context with named arguments laid over it
} ValueKind;

typedef struct Merged Merged;

typedef struct Value {
    ValueKind kind;
    union {
        bool truth;
        int64_t number;
        double real;
        Str text;
        const json_t *json;
        const Merged *merged;
    };
} Value;

// One name of a path. `index` is the name as an array index, or -1.
typedef struct Segment {
    Str name;
    int64_t index;
} Segment;

struct Merged {
    Value base;
    const Str *names;
    const Value *values;
    size_t count;
};

Segment segment_of(Str name);
Value value_of_json(const json_t *json); // NULL gives VALUE_NONE
// The member of an object (in any of its spellings: common/names/member.h), the element or `length` of an array, the character or `length` of a
// string; else VALUE_NONE. Adds to *steps what it looks at beyond one member.
Value value_member(const Value *value, const Segment *segment, uint32_t *steps);
bool value_is_zero(const Value *value);
bool value_is_falsy(const Value *value); // as JavaScript's `!`: an empty array is not
// Handlebars' isEmpty: not there, null, false, "" and []; 0 is not empty, {} is not empty.
bool value_is_empty(const Value *value);
// What JavaScript's == says of two contexts, as far as it matters for `../`.
bool value_same(const Value *a, const Value *b);

// Steps that looking at all bytes of a text takes.
enum { TEXT_STEP_BYTES = 256 };
uint32_t steps_of(size_t bytes);

typedef struct Print {
    TemplateEscape escape;
    Buf *out;
    uint32_t steps; // what it took so far
    bool marked;    // an escaped text had what a URL's scheme or CSS that runs cannot be without
} Print;

// As JavaScript turns it into a string. ERROR_PERMANENT for arrays nested too deep.
bool value_print(Print *print, const Value *value, Error *err);
