// SPDX-License-Identifier: Apache-2.0
// What a vendor with an HTTP API is: pure functions over bytes. `build` makes the request for one
// mail, `read` judges the answer, `verify` and `events` (vendor_callback.h) read what it calls
// back. No I/O, no clock, no state: each is held to the vendor's own documents by vectors, and
// fuzzed. When to send, over which connection, under which limit and what happens next belongs to
// the dispatcher. Each vendor has a folder of its own; vendor_find() is the only place that lists
// them.
#pragma once

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/model/enums.h"
#include "common/vendor/send_result.h"

enum {
    VENDOR_NAME_MAX = 32,
    VENDOR_KEY_MAX = 64, // an idempotency key: [A-Za-z0-9._-]
    VENDOR_HEADERS_MAX = 24,
    VENDOR_ADDRESSES_MAX = 50,
    VENDOR_ATTACHMENTS_MAX = 20,
    VENDOR_ANSWER_MAX = 65536, // of an answer's body; what is longer is cut
};

typedef struct VendorPair {
    Str name, value;
} VendorPair;

typedef struct VendorAddress {
    Str name, address; // name may be empty
} VendorAddress;

typedef struct VendorAttachment {
    Str name, type; // "invoice.pdf", "application/pdf"
    Str content_id; // of an inline image, without <>; empty: an attachment
    Str bytes;
} VendorAttachment;

// One mail, or one message of another channel, for one recipient: there `to.address` is the
// channel's address (a phone number, a device's token), and what only mails have is empty. Texts
// are UTF-8 and were checked: addresses are the channel's, no value of a mail holds a line break.
typedef struct VendorMail {
    Str tenant, notification_id; // "ntf_..."
    int32_t attempt;
    Str key; // the claim's vendor_key: the same for each try of the same claim
    Str category, template_key;
    VendorAddress from, to;
    Str reply_to;                  // empty: none
    const VendorAddress *cc, *bcc; // they get this very mail
    size_t cc_count, bcc_count;
    Str return_path; // of the envelope; empty: the vendor's own
    Str subject, html, text;
    const VendorPair *headers; // beyond those above: List-Unsubscribe, Feedback-ID ...
    size_t header_count;
    const VendorAttachment *attachments;
    size_t attachment_count;
    Str message_id; // without <>
    Str message; // the whole mail as bytes (headers, body, CRLF; DKIM-signed when a key is there),
                 // without Bcc; empty unless the vendor's `whole` is set
    bool urgent; // of the lanes critical and high
    Str callback_url;      // where the vendor reports this very attempt; empty: no public address
    int64_t expires_at_us; // 0: never
    int64_t since_us;      // for `ask`: it was not sent before; 0: not known
    uint32_t segments;     // of an SMS, as we count them; 0: not counted
    Str data;      // of a push, whose title is `subject` and body `text`: a JSON object, or empty
    Str locale;    // "de-AT": of WhatsApp and voice, whose script is `text`
    Str reference; // of WhatsApp: the name of the vendor's template, with its parameters; empty:
                   // `text` is free text
    const Str *parameters;
    size_t parameter_count;
} VendorMail;

// A credential, read from where its reference points. `settings` are its other words: "region",
// "domain", "base_url" ...
typedef struct VendorAccount {
    Str name;   // the credential's
    Str id;     // the public half, where there is one: SES's access key id; empty elsewhere
    Str secret; // never logged; more than a key where the vendor's folder says so (ses/ses_key.h)
    Str bearer; // of a vendor with `sign` or `grant`: what authorizes now (push/bearers.h)
    const VendorPair *settings;
    size_t setting_count;
    struct VendorDefinition *definition; // of a vendor by definition (generic/); NULL elsewhere
} VendorAccount;

// Empty when it is not set.
Str vendor_setting(const VendorAccount *account, Str name);

typedef struct VendorRequest {
    const char *method; // "POST"
    Str url;
    VendorPair headers[VENDOR_HEADERS_MAX]; // beyond Host, User-Agent, Content-Length
    size_t header_count;
    Str body; // of a mail never empty: only a body keeps libcurl from sending twice
              // (common/http/client). Empty with "GET", which may be repeated.
} VendorRequest;

typedef struct VendorAnswer {
    int status; // 100 to 599
    const VendorPair *headers;
    size_t header_count;
    Str body;        // as much as was read
    bool cut;        // the body ended early, or was longer than VENDOR_ANSWER_MAX
    int64_t read_us; // when: for Retry-After as a date
    const struct VendorDefinition *definition; // the account's when it was asked
} VendorAnswer;

// Empty when not there; names are compared without case.
Str vendor_answer_header(const VendorAnswer *answer, Str name);
// Of Retry-After, seconds or a date; 0: none. At most a day.
uint32_t vendor_retry_after_ms(const VendorAnswer *answer);

// What the vendor says that the account may send; 0: no limit.
typedef struct VendorQuota {
    double per_s;
    double per_day, used_of_day; // in any 24 h, and in the last
} VendorQuota;

// What authorizes requests for a while, made of a secret.
typedef struct VendorBearer {
    Str text;
    int64_t refresh_us, expires_us; // from when on another one is to be had; it is of no use
} VendorBearer;

// What a caller reads as the reason_code of a message that a vendor's own code ended.
typedef struct VendorReason {
    const char *code, *reason_code; // NULL: the end of the list
    SuppressionReason suppress;     // that follows for the address; SUPPRESSION_NONE: none
} VendorReason;

typedef struct VendorApi {
    const char *name; // "sendgrid": in the ledger, in events, in routes
    Channel channel;
    const char *base_url;     // "https://api.sendgrid.com"; the credential's base_url wins. SES's
                              // has "{region}" in the place of the setting
    const char *const *needs; // settings that a credential must have, NULL at the end
    const char *const *settings; // and those that it may have, beside base_url; NULL: none
    bool needs_id;               // and an id
    bool whole;                  // build wants VendorMail.message
    bool rewrites;         // the mail's Date and Message-ID are its own, whatever it was given
    size_t message_max;    // bytes of the whole mail that it takes
    size_t recipients_max; // of to, cc and bcc together
    // How long the same key is known there, in seconds: within it the same call sends nothing
    // twice. 0: it knows no keys.
    int64_t key_known_s;
    // ERROR_PERMANENT names the field that the vendor cannot carry; ERROR_CONFIG the setting of the
    // account. All of *ret lives in `arena` or is static.
    bool (*build)(
        const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
        VendorRequest *ret, Error *err);
    // Never fails: an answer that says nothing is SEND_UNKNOWN or judged by its status alone.
    // (500, 502, 504 and 408 are uncertain: SEND_UNKNOWN.) Slices live in `arena` or the answer.
    void (*read)(const VendorAnswer *answer, Arena *arena, SendResult *ret);
    // The call of `build` made so that the vendor checks it and sends nothing; `read` judges
    // the answer. NULL: it has no such way.
    bool (*rehearse)(
        const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
        VendorRequest *ret, Error *err);
    // A call that proves the credential and sends nothing; NULL: there is none. `read` judges its
    // answer: REPLY_ACCEPTED and REPLY_TERMINAL (a mail of nothing was understood and refused)
    // prove it, REPLY_CONFIG says that it is not good, all else says nothing.
    bool (*test)(
        const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
    // What the answer to `test` says of the account's limits; false: nothing. NULL: it never does.
    bool (*quota)(const VendorAnswer *answer, Arena *arena, VendorQuota *ret);
    // What asks whether a mail with an unknown outcome was taken, and its answer: 1 it was, 0 not
    // found, -1 the answer does not say. NULL: it cannot be asked.
    bool (*ask)(
        const VendorMail *mail, const VendorAccount *account, int64_t now_us, Arena *arena,
        VendorRequest *ret, Error *err);
    int (*asked)(const VendorAnswer *answer, const VendorMail *mail, Arena *arena, SendResult *ret);
    // Is it an address of this vendor's? It never gets another's. NULL: each of its channel is.
    bool (*takes)(Str address);
    const char *addresses; // with `takes`: what they look like, for callers
    bool http2;            // spoken by common/http2
    bool document;         // its secret is a text of several lines: a key as PEM, JSON
    // Vendors whose secret only makes what authorizes: `sign` makes it here, for one origin when
    // `audience` says one; `grant` is the call that asks for it, `granted` reads its answer (false:
    // there is none in it). NULL: the secret itself authorizes.
    bool (*sign)(
        const VendorAccount *account, Str audience, int64_t now_us, Arena *arena, VendorBearer *ret,
        Error *err);
    bool (*grant)(
        const VendorAccount *account, int64_t now_us, Arena *arena, VendorRequest *ret, Error *err);
    bool (*granted)(const VendorAnswer *answer, Arena *arena, VendorBearer *ret, Error *err);
    // The origin that `sign` needs for this mail; NULL: one bearer for all.
    Str (*audience)(const VendorMail *mail, Arena *arena);
    // The bearer was refused, nothing else: with a new one the same request may be sent again.
    bool (*stale)(const VendorAnswer *answer, Arena *arena);
    const VendorReason *reasons; // NULL: its codes say no more than their class
    // The address is an endpoint of its own and the secret (an incoming URL): the credential has no
    // secret, and what one address answers says nothing of the vendor.
    bool endpoint;
    // How fast one address may be written to: at once, then one in each interval.
    int32_t endpoint_burst, endpoint_interval_ms;
    bool by_definition; // its credential says how it is spoken to (generic/definition.h)
} VendorApi;

// Of a SendResult's text, which begins with the vendor's code; NULL: no more than its class says.
const VendorReason *vendor_reason(const VendorApi *api, Str text);

// NULL: no vendor with an HTTP API has this name. "<channel>-<word>" is one by definition, whose
// name here is none of its own.
const VendorApi *vendor_find(Str name);
// The n-th that the code knows, for lists; NULL behind the last.
const VendorApi *vendor_at(size_t n);
