// SPDX-License-Identifier: Apache-2.0
// Which of the tenant's recipients a batch is for, as the API takes it: an object, all of whose
// members must hold, or an array of up to RECIPIENT_QUERY_ALTERNATIVES_MAX such objects, one of
// which must. Pure.
//   labels          all of these (roles too)
//   locales         one of these; "de" is also "de-AT"; a recipient without one has the tenant's
//   identity_types  one of these
//   consent         true: has consented to the batch's category on its channel
// An object without members is every recipient. A list may be written as its only entry.
#pragma once

#include "common/api/api_json.h"

enum {
    RECIPIENT_QUERY_ALTERNATIVES_MAX = 8,
    RECIPIENT_QUERY_WORDS_MAX = 16, // of one list
};

// Takes "recipient_query" out of the body: as packed JSON, an array of objects with lists in them
// (common/campaign/member_choice.h reads it), in body->arena; empty when it is not there. false: a
// problem names the field ("recipient_query[1].locales[0]").
bool recipient_query_read(ApiBody *body, Str *ret);
