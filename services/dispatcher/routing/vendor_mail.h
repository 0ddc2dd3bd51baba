// SPDX-License-Identifier: Apache-2.0
// The mail of a job in parts, as a vendor's HTTP API wants it. Pure. It is in the job's arena, so
// that a second vendor's request can be made from it when the first one did not get the mail.
#pragma once

#include "services/dispatcher/job.h"

// Of a mail that mime_check() has taken: so no value can begin a header of its own. The vendor's
// key and what belongs to one attempt is filled in when it is sent (vendor_mail_claim).
VendorMail *vendor_mail_make(const Job *job, const MimeMail *mime);
// The same of another channel's message to job->mail.to. content: that channel's, opened
// (event_type_of_content).
VendorMail *vendor_mail_message(const Job *job, const ProtobufCMessage *content);
// Fills in what the claim says: key, attempt and, at a vendor that has one, the address to report
// to: with the capability of tenant and vendor, and a token that names the attempt. The same key
// always has the same attempt, so the same bytes.
void vendor_mail_claim(Job *job, const JobRules *rules);

// The vendor_key of an attempt's own claim, in the arena: "<notification id>-<attempt>".
Str vendor_mail_key(const Job *job);
