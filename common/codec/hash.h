// SPDX-License-Identifier: Apache-2.0
// Hashes and derived ids, on OpenSSL 3 EVP (fetched once, never implicitly).
#pragma once

#include "common/base/arena.h"
#include "common/base/id.h"
#include "common/model/enums.h"

enum { SHA256_LEN = 32, SHA1_LEN = 20, ADDRESS_HASH_LEN = 32, KEY_SUBJECT_LEN = 16 };

void sha256(Str data, uint8_t out[SHA256_LEN]);
// The same of bytes that come in pieces; from any thread, unlike the others here.
typedef struct Sha256 Sha256;
Sha256 *sha256_begin(void);
void sha256_add(Sha256 *digest, Str piece);
void sha256_end(Sha256 *digest, uint8_t out[SHA256_LEN]); // frees it
void hmac_sha256(Str key, Str data, uint8_t out[SHA256_LEN]);
// Of a vendor that signs with it; for nothing of our own.
void hmac_sha1(Str key, Str data, uint8_t out[SHA1_LEN]);

// An event's id: the first 128 bits of SHA-256 over stage, cause and discriminator
// (length-prefixed), as 22 characters of base64url. The same cause and stage always give the same
// id, which is what makes a repeat harmless. Conventions (stage, cause, discriminator), used by
// every service:
// clang-format off
//   request    "request",  notification id, ""
//   rendered   "rendered", notification id, attempt in decimal
//   status     "status",   notification id, "<status>/<attempt in decimal, 0 before any>"
//              "status",   vendor's event id, "<status>"            for a vendor's callback
//              "status",   notification id, "<status>/link/<its number>/<minute since 1970>", and
//              "/machine" behind it               a tracked link or the pixel (webhook-receiver)
//   deferred   "deferred", notification id, "schedule", "quiet", "limit", "digest" or
//              "retry/<attempt that will be made>"
//   guardian   no event: a copy's id is derived from "guardian|<notification id>" (gate_run.c)
//   window     "window",   recipient id, "<tenant>/<category>/<channel>/<flush_at_us>"
//   inbound    "inbound",  vendor, "<tenant>/<hex of SHA-256 of the body>"
//   dead       "dead",     stream, "<stage>/id/<the input's id>"; of EVENTS, and without an id,
//              "dead",     stream, "<stage>/<sequence in decimal>"
//              "dead",     stream, "<stage>/<sequence in decimal>/<trigger key>"   one trigger's
//   cancel     "cancel",   source event's identity, "<tenant>|<type>|<cancel key>"
//   outbox     "outbox",   mapping's name, "<source>/<row's key>/<attempt>/<its id>"          (outbox-relay)
//   command    "command",  "<tenant>/<correlation id>", "<type>"                     (order-saga)
//   timeout    "timeout",  "<tenant>/<correlation id>", "<timeout_retry_count>"      (order-saga)
//   retention  "retention", "order-saga", "<number of its period since 1970>/<its seconds>"        (order-saga)
//   settle     "settle",   vendor's event id, "<status>"
//   settle     "settle",   notification id, as the status of a tracked link
//   health     "health",   subject of the entry, "<down_since_us>/<changed_at_us>/<instance>"
//   revocation "revocation", subject of the entry, "<before>/<who revoked>"
//   webhook    "webhook", subscription id, event id of the status      a delivery: behind "whd_"
//   hook       "hook", delivery id, turn in decimal; "deferred", delivery id, turn: the same for later
//   sealed     "sealed",   "EVENTS/<stored at>", "<sequence in decimal>" of the event in clear          (ingest)
//   feed       "feed", notification id, "item", or "<action>/<until_us>" of what its time brought
//              "feed", recipient in hex, "<action>/<request id>" of what the recipient did
//   span       "attempt", notification id, attempt in decimal; "saga", message id, correlation id: no events, spans (common/trace)
//   replayed   "replay",   run's id, "<stream>/<sequence in decimal>"   (also a resend and a repair)
//   resend     "resend",   request id, "<tenant>/<sequence>/<stored at>/<flags>": asked for through the API                     (gateway)
//   test       "test",     request id or Idempotency-Key, "<tenant>/<key>/<version>/<channel>/<at>": a test of a template version (gateway)
// clang-format on
void event_id_derive(const char *stage, Str cause, Str discriminator, char out[EVENT_ID_SIZE]);
// "dat_...": the id of an attempt at a notification of this time.
void attempt_id_derive(Str notification_id, int32_t attempt, int64_t created_us, char out[ID_SIZE]);

// An event's id where anyone may read it: itself, or its SHA-256 in hex when it holds '@' or '+'
// and so may be an address or a telephone number.
Str event_id_in_clear(Str id, Arena *arena);

// The notification id of a NotifyCommand: whoever publishes one knows it beforehand, but for the
// retention class, which ingest decides (`code`: RETENTION_CODE_ANY then). `identity` is its
// Nats-Msg-Id (of at most 128 printable bytes), at_us its produced_at_us.
void notify_id_derive(Str tenant, Str identity, int64_t at_us, char code, char out[ID_SIZE]);

// Keyed hash by which an address is found but not guessed: HMAC-SHA256(hash key,
// "<tenant>|<channel>|<normalised>"). E-mail is normalised by lower-casing it whole.
void address_hash(
    Str hash_key, Str tenant, Channel channel, Str address, uint8_t out[ADDRESS_HASH_LEN]);

// Two data keys for each recipient: what the law may oblige the sender to keep (the retention class
// record, orders) has one of its own, so that an erasure can destroy the other one at once.
typedef enum DataKeyKind { DATA_KEY_ORDINARY, DATA_KEY_RECORD } DataKeyKind;

// Whose data key seals a recipient's fields: HMAC(hash key, "key|<tenant>|<recipient id, or hex of
// address hash>", and "|record" behind it for that kind) cut to 16.
void key_subject(
    Str hash_key, DataKeyKind kind, Str tenant, Str recipient, uint8_t out[KEY_SUBJECT_LEN]);
