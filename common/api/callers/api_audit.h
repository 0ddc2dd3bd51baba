// SPDX-License-Identifier: Apache-2.0
// The audit log of the API: one entry for each write and each reveal, made here for all routes, so
// that no handler can forget it. Law: the entry is stored before the handler runs; when it cannot
// be stored the call is 503 and nothing is done.
#pragma once

#include "common/auditlog/audit_append.h"
#include "common/codec/master_key.h"
#include "common/http/server.h"
#include "common/model/scope.h"

struct ApiCall;

typedef struct ApiAudit {
    AuditLog *log; // borrowed; NULL: nothing is noted
    const char *program;
    uint8_t digest_key[MASTER_KEY_LEN]; // of bodies and addresses: neither is found by guessing
} ApiAudit;

void api_audit_init(ApiAudit *audit, AuditLog *log, const MasterKey *master, const char *program);

// What of a call decides whether it is noted.
typedef struct ApiAct {
    Str method;
    Scope scope;  // the route's
    bool reveals; // it asks for what is masked by default
    bool person;  // a user of the console, not a key
} ApiAct;

// Pure. false: it is not noted. A reveal is AUDIT_READ, a write AUDIT_WRITE: every method but GET
// and HEAD, unless the route's scope only reads (a preview, a trial). What a key sends and says of
// recipients is data, which the streams REQUEST and PEOPLE and the batches hold: not noted, but for
// what is deleted. All that a person does is.
bool api_audit_wants(const ApiAct *act, AuditKind *ret_kind);

// Notes the call where it must be, then goes on with its handler, inside of the call or later.
void api_audit_run(const ApiAudit *audit, struct ApiCall *call);
