// SPDX-License-Identifier: Apache-2.0
// What differs between two versions of a template, as their documents (common/render/version_json):
// member by member, long texts line by line. Pure.
#pragma once

#include <jansson.h>

enum {
    DIFF_DEPTH_MAX = 16,      // of members within members
    DIFF_CHANGES_MAX = 500,   // members that are listed
    DIFF_CELLS_MAX = 1 << 20, // lines of one text times lines of the other; beyond it no lines
};

// [{"at": "locales[0].subject", "from": "Hi", "to": "Hello"}, ...]; null: it is not there. A text
// of several lines has "lines", [{"op": " ", "-" or "+", "text": "..."}]. What every version has of
// its own (version, status, who published it and when) is left out. New reference.
json_t *template_diff(json_t *from, json_t *to);
