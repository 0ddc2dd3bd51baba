// SPDX-License-Identifier: Apache-2.0
// What the commands about a person's data share: whom the flags mean, and the connections.
#pragma once

#include "common/codec/master_key.h"
#include "common/epochs/epoch_folder.h"
#include "common/erasure/erasure_request.h"
#include "common/session/session.h"
#include "services/cli/cli.h"

typedef struct EraseLinks {
    PGconn *pg;
    Session session;
    bool session_open;
    MasterKey *master;   // compared with the registered keys
    EpochFolder *epochs; // NULL: STENTOR_EPOCH_KEYS_DIR is not set
} EraseLinks;

// Postgres, NATS and the master key file. erase_close also after a failure.
bool erase_open(Cli *cli, EraseLinks *ret, Error *err);
void erase_close(EraseLinks *links);

// Counts the erasures that AUDIT and the certificates' objects know and Postgres does not; when
// there are any, closes the gate: services that hold keys do not start.
bool erase_close_gate(Cli *cli, Session *session, Error *err);

// STENTOR_LEGAL_DUTY, and the span of the class record; in the command's arena.
bool erase_duty(Cli *cli, ErasureDuty *ret, Error *err);

const char *erase_tenant(const Cli *cli, Error *err); // NULL: none is named, or it is no tenant
// By --recipient, --identity or --address with --channel; exactly one of them.
bool erase_search(Cli *cli, ErasureSearch *ret, Error *err);
const char *erase_ground(const Cli *cli, Error *err); // --ground; NULL as erase_actor
// Who asks: --requested-by, else "operator". NULL: it cannot stand in the audit log.
const char *erase_actor(const Cli *cli, const char *flag, Error *err);
