// SPDX-License-Identifier: Apache-2.0
// Dress: what a mail carries beside its content, made from whose it is and which domain it is from:
// the return path, Feedback-ID, List-Id, CFBL-Address, and its DKIM signatures. Pure but for the
// keys of send_domains.h. Law: a mail from a domain that has keys is signed or is not sent.
#pragma once

#include "common/codec/bounce_token.h"
#include "common/mime/mime.h"
#include "services/dispatcher/dress/send_domains.h"
#include "stentor/v1/rendered.pb-c.h"

enum { FEEDBACK_SENDER_MIN = 5, FEEDBACK_SENDER_MAX = 15 }; // what Gmail asks for

typedef struct DressRules {
    BounceKey bounce_key;
    Str feedback_sender; // [a-z0-9-], the last field of Feedback-ID
} DressRules;

typedef struct Dress {
    SendDomain *domain; // NULL: nothing is configured for it
    Str token;          // of this attempt (bounce_token.h): the envelope's ENVID
    Str return_path;    // the envelope's sender; empty: the From
    Str feedback_id, list_id, cfbl_address;
    Str test; // which template version it is a test of: "<key>/<version>"; empty: it is none
    DkimSigner signers[SEND_DOMAIN_KEYS_MAX];
    size_t signer_count;
} Dress;

typedef struct DressWant {
    const DressRules *rules;
    const SendDomains *domains;
    const Stentor__V1__Rendered *rendered;
    Str from;     // the address of From
    Str list_id;  // that the caller wants; empty: by category
    Arena *arena; // holds what is made
} DressWant;

// ERROR_TRANSIENT: a key cannot be read, the mail must wait. ERROR_PERMANENT: it cannot be made.
bool dress_make(const DressWant *want, Dress *ret, Error *err);
// Into the headers; what `mime` points to then lives as long as the dress.
void dress_put_on(const Dress *dress, MimeMail *mime);
// The whole mail: its signatures, when there are any, in front of `message`. In `arena`.
bool dress_sign(const Dress *dress, Str message, int64_t at_us, Arena *arena, Str *ret, Error *err);
