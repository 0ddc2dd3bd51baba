// SPDX-License-Identifier: Apache-2.0
// The body of POST /v1/notifications: JSON to checked requests, or the problem to answer with.
// Pure. One object, or an array of 1..1000 that is taken or refused as a whole. An object with
// `channels` makes one request for each of them.
#pragma once

#include <jansson.h>

#include "common/model/channel_set.h"
#include "common/request/request.h"
#include "common/routing/routes.h"

enum { REQUEST_ARRAY_MAX = 1000 };

typedef struct RequestRules {
    int64_t now_us;
    ChannelSet delivered; // a request for another channel is refused
    const Routes *routes; // whose vendors take which addresses; NULL: all are taken
    Str tenant;
} RequestRules;

typedef struct RequestList {
    Request *items;
    size_t *sources;          // of each: its object's place in the array
    const json_t **variables; // of each: as they were parsed, NULL: none; borrowed from `root`
    json_t *root;
    size_t count;
    bool is_array; // fields are named with the object's index
    bool single;   // one object without `channels`: answered with one object
} RequestList;

// Everything in *ret but `root` lives in `arena`; nothing points into `body`. false: *problem names
// every wrong field of every object, up to PROBLEM_MORE_MAX, and *ret stays as it was.
bool request_json_parse(
    Str body, const RequestRules *rules, Arena *arena, RequestList *ret, Problem *problem);
void request_list_done(RequestList *list); // frees `root`; the requests stay

// Adds a field found wrong after parsing (unknown template) in the request at `index`: it gets its
// object's index.
void request_json_problem(
    const RequestList *list, size_t index, const FieldError *err, Arena *arena, Problem *problem);
