// SPDX-License-Identifier: Apache-2.0
// clang-format off
// The other users of the NATS server: the operator's table of applications and subscribers, in the file
// of passwords. Each has an account of its own, which sees nothing of ours but what is exported to
// it by name; a reply that it names is a subject of its own account.
//
//   stentor-ingest=secret                       a user's password
//   application shop tenants=acme,beta          may publish evt.acme.> and evt.beta.>, and reads their statuses
//   application desk tenants=*                  the same for every tenant, the platform's too
//   relay drain tenants=acme                    the same, of an outbox-relay
//   subscriber dashboard tenant=acme            sees the statuses of acme, and the replies
//   shop=secret                                 the password of such a user
//
// What an application publishes reaches ingest (SUBJECT_INTAKE), which stores it under an id of its
// tenant and type. A relay is the operator's own program and derives ids that nothing else has.
//
// Blank lines and those that begin with '#' are passed over, any other line is refused.
// clang-format on
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/error.h"

enum { ACCOUNT_TENANTS_MAX = 8, ACCOUNTS_MAX = 512, ACCOUNT_NAME_MAX = 48 };

// Under it an account reaches JetStream: "$JS.stentor.API...", the API of another domain.
#define ACCOUNT_DOMAIN "stentor"

typedef enum AccountKind { ACCOUNT_APPLICATION, ACCOUNT_RELAY, ACCOUNT_SUBSCRIBER } AccountKind;

typedef struct Account {
    AccountKind kind;
    Str name; // also the user's, and of a subscriber its consumer's
    Str tenants[ACCOUNT_TENANTS_MAX];
    size_t tenant_count; // 0: every tenant
    Str password;
} Account;

typedef struct Accounts {
    Account *at;
    size_t count;
    Str *passwords; // of our own users, in the order of nats_rights()
} Accounts;

// PERMANENT with the line's number for what is none of these, for a name that is given twice, for a
// user without a password. `ret` points into the text and the arena.
bool accounts_read(Str text, Arena *arena, Accounts *ret, Error *err);
// The accounts of a nats-server configuration: ours with JetStream, and each of theirs. false when
// `out` is full.
bool accounts_write(Buf *out, const Accounts *accounts);
