// SPDX-License-Identifier: Apache-2.0
// Secrets: those that credentials refer to, in the memory of a process that uses them. Each is read
// when it is wanted, and again when its file changes (looked at every few seconds), when its
// program is due (every 5 min), and when a vendor refuses it; so a secret is rotated without a
// restart. An unreadable one keeps the text that was read before. Law: each use is counted and the
// first one logged; no secret is ever logged or in an error.
#pragma once

#include <uv.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/service/metrics.h"

#define SECRET_DIRS_OPTION "STENTOR_CREDENTIAL_DIRS"
#define SECRET_DIRS_DEFAULT "/etc/stentor/credentials:/run/secrets"
#define SECRET_DIRS_HELP                                                                           \
    "folders, ':' between them, with the files and programs that credentials refer to"

enum {
    SECRETS_MAX = 4000,
    SECRETS_SERIES_MAX = 200, // later ones are counted under credential="other"
    SECRETS_POLL_MS = 5000,
    SECRETS_EXEC_EVERY_MS = 300000,
    SECRETS_REFRESH_MS = 10000, // between two readings because of refusals
};

typedef struct SecretName {
    Str owner; // the tenant, or "platform"
    Str vendor, name;
} SecretName;

typedef struct SecretsOptions {
    uv_loop_t *loop;
    Metrics *metrics;    // NULL: none
    const char *service; // "dispatcher": stentor_dispatcher_credential_uses_total
    const char *folders; // SECRET_DIRS_OPTION's value; copied
    int64_t poll_ms;     // 0: SECRETS_POLL_MS
    int64_t exec_ms;     // how long a program may take; 0: 10 s
    // It can be used for the first time, or is another one now. May stay NULL.
    void (*on_changed)(void *ctx, const SecretName *name);
    // The same, with its text, for whoever knows what it should be. May stay NULL.
    void (*on_text)(void *ctx, const SecretName *name, Str text);
    void *ctx;
} SecretsOptions;

typedef struct Secrets Secrets;

// NULL: ERROR_CONFIG, the folders are wrong.
Secrets *secrets_new(const SecretsOptions *options, Error *err);
// Reads it now, and from then on as above; the same reference again reads nothing. PERMANENT: it is
// no reference, or there are SECRETS_MAX already.
bool secrets_want(Secrets *secrets, const SecretName *name, Str reference, Error *err);
// The same for one that nothing uses yet: that it cannot be read is a note and no incident, until
// it is wanted.
bool secrets_stage(Secrets *secrets, const SecretName *name, Str reference, Error *err);
void secrets_forget(Secrets *secrets, const SecretName *name); // unknown ones too
// For one call of a vendor: counts it. *ret is valid until the loop goes on. TRANSIENT: it has not
// been read yet; CONFIG: it is not wanted, or cannot be read, and why.
bool secrets_use(Secrets *secrets, const SecretName *name, Str *ret, Error *err);
// Did the last reading fail, and why? Also of one whose text from before is in use.
bool secrets_failed(const Secrets *secrets, const SecretName *name, Error *ret);
// The vendor has refused it: it is read again, at most every SECRETS_REFRESH_MS.
void secrets_refresh(Secrets *secrets, const SecretName *name);
// on_closed from the loop, perhaps at once, when nothing is under way; then secrets_free().
void secrets_close(Secrets *secrets, void (*on_closed)(void *ctx), void *ctx);
void secrets_free(Secrets *secrets); // NULL-safe; after it is closed
