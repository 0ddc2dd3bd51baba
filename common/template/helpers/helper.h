// SPDX-License-Identifier: Apache-2.0
// Helpers: the functions that a tag or a subexpression may call: {{date at "long"}},
// {{#if (eq a b)}}. One table of rows: name, how many arguments, which named ones. Not public: used
// inside common/template.
#pragma once

#include "common/base/arena.h"
#include "common/template/helpers/format.h"
#include "common/template/template.h"
#include "common/template/value.h"

#define HELPER_ASSET "asset" // its literals are noted when a template is compiled

// Texts that helpers made in one render; more is an error.
enum { HELPER_TEXT_MAX = 2 * 1024 * 1024 };

// What a call may use. One a render.
typedef struct HelperRun {
    Str locale;
    Str zone;
    Formats *formats;
    const TemplateAssets *assets; // NULL: none
    Arena *arena;                 // of the texts that are made
    Buf *work;                    // empty at the beginning of a call
    size_t made;                  // bytes of text so far
    uint32_t steps;               // of this call; the render counts them
} HelperRun;

typedef struct HelperArgs {
    const Value *params;
    size_t count;
    const Str *names;
    const Value *named;
    size_t named_count;
    bool first_is_written; // the first argument stands in the template itself
} HelperArgs;

// ERROR_PERMANENT without place and without the helper's name. Law: what the variables gave is not
// in it: the text reaches STATUS, history and logs.
typedef bool (*HelperFunction)(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);

typedef struct Helper {
    const char *name;
    size_t min;
    size_t max;
    const char *named; // allowed named arguments, separated by spaces
    bool may_miss;     // arguments that are not there are its business (strict mode)
    bool is_condition; // may stand as a block: {{#eq a b}}..{{else}}..{{/eq}}
    HelperFunction apply;
} Helper;

// ERROR_PERMANENT with the helper's name and without place. run->steps is what the call took.
bool helper_apply(
    const Helper *helper, HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
const Helper *helper_find(Str name);               // NULL: there is none
bool helper_takes(const Helper *helper, Str name); // is it one of its named arguments?
