// SPDX-License-Identifier: Apache-2.0
// Tokens of tracked links and of the pixel: "lnk_" and base64url. A token holds the notification,
// the link's number and where it leads, sealed (AES-256-GCM) under a key of the tenant that is
// derived from the master key: stateless, so a click is answered without a look-up, only
// what we sealed redirects, and where it leads cannot be read from it. The same link of the same
// request always has the same token. Pure; time is an argument.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/codec/hash.h"
#include "common/codec/master_key.h"

enum {
    MAIL_LINK_URL_MAX = 2000, // a longer one is not tracked
    MAIL_LINK_INDEX_MAX = 65535,
    MAIL_LINK_TOKEN_SIZE = 2900, // with NUL
    MAIL_LINK_DAYS = 400,        // as the opt-out link of the same mail
    MAIL_LINK_WHO_LEN = 8,
};

// Frozen: a byte of the token.
typedef enum MailLinkKind { MAIL_LINK_CLICK = 1, MAIL_LINK_OPEN = 2 } MailLinkKind;

// One for each master key of the file: the current one seals, each opens.
typedef struct MailLinkKey {
    uint8_t bytes[MASTER_KEYS_MAX][SHA256_LEN];
    size_t count;
} MailLinkKey;

typedef struct MailLink {
    MailLinkKind kind;
    Str tenant;
    Str notification_id;
    uint32_t index;                 // of the link in its mail, from 1; of the pixel 0
    int64_t issued_at_us;           // kept in whole seconds
    uint8_t who[MAIL_LINK_WHO_LEN]; // the beginning of the address hash: by it a link is revoked
    Str url;                        // http or https; of the pixel empty
} MailLink;

void mail_link_key(const MasterKey *master, MailLinkKey *ret);

// May a link lead there? An http or https URL without blanks and control characters that is short
// enough.
bool mail_link_is_url(Str url);

// Seals the links of one tenant: its keys are derived once for all links of a mail.
typedef struct MailLinkSealer {
    Str tenant; // borrowed
    struct evp_cipher_ctx_st *cipher;
    uint8_t nonce[SHA256_LEN];
} MailLinkSealer;

// ERROR_PERMANENT: that is no tenant. mail_link_sealer_done() follows only when it is true.
bool mail_link_sealer_init(MailLinkSealer *sealer, const MailLinkKey *key, Str tenant, Error *err);
void mail_link_sealer_done(MailLinkSealer *sealer);
// ERROR_PERMANENT names the field that does not fit; the link's tenant is the sealer's.
bool mail_link_seal(
    MailLinkSealer *sealer, const MailLink *link, char out[MAIL_LINK_TOKEN_SIZE], Error *err);

// Strings of *ret live in `arena`. ERROR_PERMANENT: it is not one of ours, was altered, or is older
// than MAIL_LINK_DAYS.
bool mail_link_open(
    const MailLinkKey *key, Str token, int64_t now_us, Arena *arena, MailLink *ret, Error *err);
