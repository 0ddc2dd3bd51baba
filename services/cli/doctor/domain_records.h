// SPDX-License-Identifier: Apache-2.0
// The records of a sending domain, read: SPF (RFC 7208), DKIM keys (RFC 6376, 8463), DMARC
// (RFC 7489). Pure.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/str.h"

// ---- SPF ----

typedef enum SpfName {
    SPF_ALL,
    SPF_INCLUDE,
    SPF_A,
    SPF_MX,
    SPF_IP4,
    SPF_IP6,
    SPF_PTR,
    SPF_EXISTS,
    SPF_REDIRECT,
    SPF_OTHER, // another modifier
    SPF_UNKNOWN,
} SpfName;

typedef struct SpfTerm {
    char qualifier; // '+', '-', '~' or '?'
    SpfName name;
    Str value; // behind ':' or '=', without the lengths; empty: the domain itself
    int bits4; // prefix lengths; 32 and 128 where none is given
    int bits6;
} SpfTerm;

bool spf_is_record(Str txt);
// From behind "v=spf1" on; false: there is no other one.
bool spf_next(Str *rest, SpfTerm *ret);
bool spf_asks_dns(SpfName name); // counts among the ten look-ups that a receiver makes
// Is the address in that network of as many bits? Both as text, of either family.
bool spf_network_has(Str network, int bits4, int bits6, const char *address);

// ---- tags: "v=DKIM1; k=rsa; p=..." ----

// The tag's value, blanks around it left out; empty and false: it is not there.
bool tag_value(Str record, const char *name, Str *ret);
// A copy without white space, as the value of p= may be folded.
Str tag_squeeze(Str value, Arena *arena);

// ---- DKIM ----

typedef struct DkimRecord {
    bool ed25519; // else RSA
    Str key;      // base64, without blanks; empty: revoked
    int bits;     // of an RSA key
    bool testing; // t=y
} DkimRecord;

// ERROR_PERMANENT says what is wrong with it.
bool dkim_record_read(Str txt, Arena *arena, DkimRecord *ret, Error *err);
// The p= that belongs to a private key in PEM. ERROR_PERMANENT: it is none of the two kinds.
bool dkim_public_of(Str pem, Arena *arena, Str *ret, Error *err);

// ---- names ----

// The domain that is left when the first label goes; empty: there is none worth asking.
Str domain_parent(Str domain);
