// SPDX-License-Identifier: Apache-2.0
// Opening a job (job_open): what was sealed becomes a message that a vendor can take, or the job is
// decided. What open.c (every channel) and open_mail.c (e-mail) share. Nothing waits in it: a job
// whose CONFIG or files are not here yet is opened again. Law: what is unsealed is in
// JobOpening.scratch, and what the job keeps of it is copied into the job's arena.
#pragma once

#include "services/dispatcher/job.h"

// Unsealed and checked, of the channel's type, in the scratch. NULL: err.
const ProtobufCMessage *opening_content(
    const Job *job, const JobOpening *opening, const BodyPrefix *prefix,
    const ProtobufCMessageDescriptor *type, Error *err);
// The recipient's, in the scratch. NULL: err.
const Stentor__V1__Address *opening_address(const Job *job, const JobOpening *opening, Error *err);

// A mail whose address was suppressed or tenant suspended while it waited is not sent. true:
// decided.
bool opening_is_barred(Job *job, const JobOpening *opening, const char *to);
// The vendors that its route gives it. false: none may take it, decided; or *ret_wait, for CONFIG
// may still name one.
bool opening_has_vendor(Job *job, const JobOpening *opening, const char *address, bool *ret_wait);

// Makes the mail, or decides. false: CONFIG may still verify its sender or name its vendor's
// credential, or its files are on their way.
bool opening_mail(Job *job, const JobOpening *opening, const BodyPrefix *prefix);
