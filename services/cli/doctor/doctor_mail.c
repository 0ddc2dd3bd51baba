// SPDX-License-Identifier: Apache-2.0
// What only the last mails show from here: the domain of their Message-ID, which is a setting of
// the dispatcher, and whether they can be opted out of, which is one of the renderer.
#include "common/bus/jetstream/get_message.h"
#include "common/codec/event.h"
#include "common/model/suppressions.h"
#include "services/cli/doctor/doctor.h"
#include "stentor/v1/rendered.pb-c.h"
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

enum { LOOK_BACK = 64 }; // messages of a lane

typedef enum OptOutFound { NONE_FOUND, FOUND_WITH_LINK, FOUND_WITHOUT_LINK } OptOutFound;

static OptOutFound judge(const Stentor__V1__Rendered *rendered)
{
    if (rendered == NULL || rendered->channel != STENTOR__V1__CHANNEL__CHANNEL_EMAIL ||
        category_ignores_opt_out((Category)rendered->category)) {
        return NONE_FOUND;
    }
    return rendered->without_opt_out ? FOUND_WITHOUT_LINK : FOUND_WITH_LINK;
}

// The youngest of a lane's last e-mails that may be opted out of. A lane that cannot be read is a
// line of its own (doctor_topology).
static OptOutFound look_back(Doctor *doctor, const char *lane, const char *stream)
{
    Arena *arena = doctor->cli->arena;
    Error ignored = {0};
    BusMessage message = {0};
    bool found = false;
    OptOutFound result = NONE_FOUND;
    MessageQuery query = {
        .stream = stream,
        .last_of = arena_printf(arena, "ntf.rendered.%s.*", lane),
    };
    for (int i = 0; i < LOOK_BACK && result == NONE_FOUND; i++) {
        if (!session_get_message(&doctor->session, &query, arena, &message, &found, &ignored) ||
            !found) {
            break;
        }
        result = judge((const Stentor__V1__Rendered *)event_unpack(
            &stentor__v1__rendered__descriptor, message.payload, arena, NULL));
        if (message.sequence <= 1) {
            break;
        }
        query = (MessageQuery){.stream = stream, .sequence = message.sequence - 1};
    }
    return result;
}

void doctor_opt_out(Doctor *doctor)
{
    static const char *const lanes[][2] = {
        {"critical", "RENDERED_CRITICAL"},
        {"high", "RENDERED_HIGH"},
        {"normal", "RENDERED_NORMAL"},
        {"low", "RENDERED_LOW"},
    };
    bool without = false;
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) {
        without = look_back(doctor, lanes[i][0], lanes[i][1]) == FOUND_WITHOUT_LINK || without;
    }
    doctor_say(
        doctor, "opt-out links", without ? CHECK_WARN : CHECK_OK,
        without ? "the last e-mail that its recipient may opt out of had no link for it (HINT: "
                  "STENTOR_RENDERER_PUBLIC_URL=https://notify.example.com for stentor-renderer)"
                : "none of the last e-mails lacked one");
}
