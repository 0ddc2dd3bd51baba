// SPDX-License-Identifier: Apache-2.0
// What the files of `stentor doctor` share: the report so far, and the state of the streams.
#pragma once

#include <jansson.h>
#include <libpq-fe.h>

#include "common/bus/consume/stream_check.h"
#include "common/session/key_file.h"
#include "services/cli/cli.h"

typedef enum Verdict { CHECK_OK, CHECK_WARN, CHECK_FAIL } Verdict;

enum { DOCTOR_STREAMS_MAX = 32 };

typedef struct Doctor {
    Cli *cli;
    json_t *checks;
    Session session; // of NATS
    bool has_session;
    bool domain_only;                        // --domain: nothing of the installation is looked at
    StreamState streams[DOCTOR_STREAMS_MAX]; // as in the topology
    bool stream_read[DOCTOR_STREAMS_MAX];
    KeyRegister in_postgres, in_config; // the registered keys
    bool postgres_read, config_read;
    int counts[CHECK_FAIL + 1];
    int64_t oldest_us;      // how long the message waits that waits longest; 0: none, or not known
    const char *oldest_for; // "stentor-renderer on REQUEST_NORMAL"
} Doctor;

void doctor_say(Doctor *doctor, const char *check, Verdict verdict, const char *text);
const StreamState *doctor_stream(const Doctor *doctor, const char *name); // NULL: not known

// Each stream and each consumer of the topology, and the oldest message. Wants a session.
void doctor_topology(Doctor *doctor);
const char *doctor_age(const Cli *cli, int64_t age_us); // "4 min"
// A line for each projection whose positions this database has: Stentor's own, which must be there,
// or those of the outboxes in an application's. Both want a session, and block for up to two
// seconds where one does not move.
void doctor_projections(Doctor *doctor, PGconn *conn);
void doctor_outbox_projections(Doctor *doctor, PGconn *conn);
// What of the log waits to be stored in object storage, and its holes; nothing where archiving is
// off. Wants a session.
void doctor_log(Doctor *doctor, PGconn *conn);
// Object storage: nothing where archiving is off. Stores and deletes an object of its own.
void doctor_storage(Doctor *doctor);
// The Message-ID's domain, as the last e-mail had it. Wants a session.
void doctor_message_id(Doctor *doctor);
// Whether the last e-mail of each lane that may be opted out of has a link for it. Wants a session.
void doctor_opt_out(Doctor *doctor);
// A line for each vendor that dispatchers have found away. Wants a session.
void doctor_channels(Doctor *doctor);
// Epoch keys and the keys' own dump.
void doctor_keys(Doctor *doctor, PGconn *conn);
// Certificates that end soon: in files that the settings name, and the API's own over HTTPS.
// Nothing where there is none.
void doctor_certificates(Doctor *doctor);
// Erasures that wait for longer than a day; after a restore, the gate that they have closed.
void doctor_erasures(Doctor *doctor, PGconn *conn);
// What mailbox providers demand of the domain of --domain, asked of DNS. ERROR_USAGE: an argument
// is wrong.
bool doctor_domain(Doctor *doctor, Error *err);
void doctor_postgres_clock(Doctor *doctor, PGconn *conn);
// By the consumer that reading CONFIG had NATS make.
void doctor_nats_clock(Doctor *doctor);
