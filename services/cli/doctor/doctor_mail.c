// SPDX-License-Identifier: Apache-2.0
// The Message-ID of the last mail that was sent: its domain is a setting of the dispatcher, which
// only its mails show from here.
#include "common/bus/jetstream/get_message.h"
#include "common/codec/event.h"
#include "services/cli/doctor/doctor.h"
#include "stentor/v1/status.pb-c.h"

static Str domain_of(Str message_id)
{
    ptrdiff_t at = str_find(message_id, '@');
    return at < 0 ? STR_EMPTY : str_slice(message_id, (size_t)at + 1, message_id.len);
}

void doctor_message_id(Doctor *doctor)
{
    Error err = {0};
    Arena *arena = doctor->cli->arena;
    BusMessage message = {0};
    bool found = false;
    MessageQuery query = {.stream = "STATUS", .last_of = "ntf.status.*.email.sent"};
    const Stentor__V1__NotificationStatus *sent = NULL;
    if (!session_get_message(&doctor->session, &query, arena, &message, &found, &err)) {
        doctor_say(doctor, "message-id", CHECK_FAIL, err.text);
        return;
    }
    if (found) {
        sent = (const Stentor__V1__NotificationStatus *)event_unpack(
            &stentor__v1__notification_status__descriptor, message.payload, arena, NULL);
    }
    Str domain = sent == NULL || sent->attempt == NULL
                     ? STR_EMPTY
                     : domain_of(str_from(sent->attempt->vendor_message_id));
    bool local = str_eq(domain, STR("localhost"));
    doctor_say(
        doctor, "message-id", local ? CHECK_WARN : CHECK_OK,
        domain.len == 0 ? "no e-mail has been sent yet"
        : local ? "the last e-mail's ends in '@localhost', which spam filters count against it "
                  "(HINT: STENTOR_MAIL_DOMAIN=example.com for stentor-dispatcher)"
                : arena_printf(
                      arena, "the last e-mail's ends in '@" STR_FMT "'",
                      STR_ARG(str_slice(domain, 0, 100))));
}
