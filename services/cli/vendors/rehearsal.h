// SPDX-License-Identifier: Apache-2.0
// Mails given to a vendor in the way that it has for trying: it checks them and sends nothing
// (VendorApi.rehearse). What it says of each is laid beside what became of that mail where it was
// sent. Blocking. The vendor gets the mail's content and addresses.
#pragma once

#include <jansson.h>

#include "common/vendor/vendor_api.h"
#include "services/cli/cli.h"
#include "services/cli/vendors/vendor_call.h"

enum { REHEARSAL_MAX = 1000, REHEARSAL_SHOWN_MAX = 20, REHEARSAL_FAILURES_MAX = 5 };

typedef struct RehearsedMail {
    const char *id;       // "ntf_..."
    const char *is, *was; // "accepted", "refused", "retry", "config", "unknown", "unsent"
    const char *answer;   // the vendor's words, addresses masked
} RehearsedMail;

// At one vendor. Everything lives in the command's arena.
typedef struct Rehearsal {
    const VendorApi *api;
    RehearsedMail mails[REHEARSAL_MAX];
    size_t count;
    int failures;        // without a verdict, one after the other
    const char *stopped; // why the rest was not tried; NULL: all was
} Rehearsal;

// One mail. After a refused credential, or REHEARSAL_FAILURES_MAX mails without a verdict, the
// others are passed over.
void rehearsal_call(
    Rehearsal *rehearsal, VendorCaller *caller, const VendorAccount *account,
    const VendorMail *mail, Arena *arena, Arena *keep);
// What became of the mails, by the history of the tenant.
bool rehearsal_compare(Rehearsal *rehearsal, Cli *cli, const char *tenant, Error *err);
// {"mails", "answers": {"accepted -> refused": 2}, "differences": [{"id", "was", "is", "answer"}]}
json_t *rehearsal_json(const Rehearsal *rehearsal);
void rehearsal_print(const Rehearsal *rehearsal);
