// SPDX-License-Identifier: Apache-2.0
// The one table of the bus: every stream, every durable consumer, every subject. `stentor migrate`
// makes or checks the streams and consumers. What each service may do with them: nats_rights.h.
#pragma once

#include "common/base/str.h"
#include "common/model/enums.h"

typedef struct StreamSpec {
    const char *name;        // "REQUEST_NORMAL"
    const char *subjects;    // "ntf.request.normal.*"
    int64_t max_age_s;       // 0: for ever
    int64_t max_bytes;       // scaled by migrate --bytes-scale-percent
    int64_t max_per_subject; // the last of each subject; 0: no limit
    bool discard_new;        // a full stream refuses (back-pressure) instead of dropping its oldest
    const char *republish;   // destination of RePublish or NULL
    int duplicate_window_ms; // 0: the usual one (admin.h)
} StreamSpec;

typedef struct ConsumerSpec {
    const char *stream;
    const char *name;    // durable; one per reading service
    const char *service; // who reads it
    int32_t ack_wait_s;  // default; migrate --ack-wait-ms overrides
    int32_t max_ack_pending;
    bool is_optional; // its service need not run: before its first read it holds nothing back
    bool moves;       // its service makes it again to begin elsewhere, or closes it by a filter
} ConsumerSpec;

// The rows are static.
const StreamSpec *topology_streams(size_t *ret_count);
const ConsumerSpec *topology_consumers(size_t *ret_count);
const StreamSpec *topology_stream(const char *name);                            // NULL: unknown
const ConsumerSpec *topology_consumer(const char *service, const char *stream); // NULL: unknown

// Names of the lanes' streams: topology_lane_stream("REQUEST", PRIORITY_LOW) is "REQUEST_LOW".
// Static strings.
const char *topology_lane_stream(const char *stage, Priority lane);

// Readers' consumers have names that a right can spell, for NATS knows whole tokens only:
// "stentor-ingest-7" is the one of number 7. So many readers of a service, in all its processes,
// can read a stream at once; one more waits.
enum { READER_NAME_SIZE = 80 };
unsigned topology_reader_names(const char *stream);
void topology_reader_name(char out[READER_NAME_SIZE], const char *service, unsigned number);

// Subjects. Each writes at most 160 bytes with NUL and is the only place that spells the subject.
// What is no tenant or no word of its set becomes "unknown": foreign text never adds a token.
enum { SUBJECT_SIZE = 160 };
void subject_request(char out[SUBJECT_SIZE], Priority lane, Str tenant);
void subject_rendered(char out[SUBJECT_SIZE], Priority lane, Str tenant);
void subject_status(char out[SUBJECT_SIZE], Str tenant, Channel channel, Status status);
void subject_deferred(char out[SUBJECT_SIZE], const char *reason, Str tenant);
void subject_inbound(char out[SUBJECT_SIZE], const char *vendor);
void subject_settle(char out[SUBJECT_SIZE], Str tenant);
void subject_hook(char out[SUBJECT_SIZE], Str tenant);
void subject_reply(char out[SUBJECT_SIZE], Str tenant, Channel channel, const char *kind);
void subject_people(char out[SUBJECT_SIZE], Str tenant);
void subject_feed(char out[SUBJECT_SIZE], Str tenant);
// Where what an application's account publishes on evt.<tenant>.<type> arrives, and the queue that
// all of ingest's processes share.
#define SUBJECT_INTAKE "in.evt.>"
#define QUEUE_INTAKE "stentor-ingest"
// evt.<tenant>.<type>; `type` is tokens joined by dots, see event_type_fits.
void subject_event(char out[SUBJECT_SIZE], Str tenant, Str type);
// 1..96 bytes of [A-Za-z0-9_-] in tokens joined by single dots.
bool event_type_fits(Str type);
// Token number `wanted` of a subject, from 0; empty: it has fewer.
Str subject_token(Str subject, int wanted);
Str subject_last(Str subject); // its last token
// An unreadable tenant becomes "unknown".
void subject_dead(char out[SUBJECT_SIZE], const char *stage, Str tenant);
// `service` as in "stentor-renderer"; '*' as the process names all of the service's.
// live.process.<service>.<instance>, on core NATS; `service` as below.
void subject_process(char out[SUBJECT_SIZE], const char *service, const char *instance);
void subject_in_hand(char out[SUBJECT_SIZE], const char *service, const char *process);
void subject_audit(char out[SUBJECT_SIZE], Str tenant, Str kind);
// A dot in the key parts two tokens: "welcome.1_0_0". At most CONFIG_KEY_MAX bytes of the key are
// used.
enum { CONFIG_KEY_MAX = 96 };
void subject_config(char out[SUBJECT_SIZE], const char *kind, Str tenant, Str key);
