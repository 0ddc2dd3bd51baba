// SPDX-License-Identifier: Apache-2.0
#include "common/deadletter/letter.h"

#include "common/base/id.h"
#include "common/bus/topology/topology.h"
#include "common/codec/event.h"
#include "common/events/kinds.h"
#include "common/events/meta.h"
#include "common/model/suppressions.h"
#include "stentor/v1/rendered.pb-c.h"
#include "stentor/v1/request.pb-c.h"

typedef Stentor__V1__Meta Meta;

static const ProtobufCMessage *read_event(const Stentor__V1__DeadLetter *body, Arena *arena)
{
    Error ignored = {0};
    const ProtobufCMessageDescriptor *type = event_type_of_subject(str_from(body->subject));
    if (type == NULL || body->payload.len == 0) {
        return NULL;
    }
    const ProtobufCMessage *event = event_unpack(type, pb_bytes(body->payload), arena, &ignored);
    // Protobuf takes nearly anything for an empty message with unknown fields.
    bool headless = event != NULL && type != &stentor__v1__notify_command__descriptor &&
                    event_meta(event) == NULL;
    return headless ? NULL : event;
}

static bool is_notification(const Meta *meta)
{
    return meta != NULL && id_parse(str_from(meta->notification_id), "ntf_", NULL);
}

static const char *find_notification(const Letter *letter)
{
    const Meta *meta = letter->body->meta;
    if (!is_notification(meta)) {
        meta = letter->event != NULL ? event_meta(letter->event) : NULL;
    }
    return is_notification(meta) ? meta->notification_id : "";
}

void letter_read(const BusMessage *message, Arena *arena, Letter *ret)
{
    Str subject = arena_str(arena, message->subject);
    *ret = (Letter){
        .sequence = message->sequence,
        .stored_at_us = message->stored_at_us,
        .subject = subject,
        .stage = subject_token(subject, 2),
        .tenant = subject_token(subject, 3),
        .traceparent = arena_str(arena, message->traceparent),
        .notification_id = "",
    };
    ret->body = (const Stentor__V1__DeadLetter *)(const void *)event_unpack(
        &stentor__v1__dead_letter__descriptor, message->payload, arena, &ret->unreadable);
    if (ret->body != NULL && ret->body->meta == NULL) {
        ret->body = NULL;
        error_set(&ret->unreadable, ERROR_PERMANENT, "it has no meta");
    }
    if (ret->body == NULL) {
        return;
    }
    ret->event = read_event(ret->body, arena);
    ret->notification_id = find_notification(ret);
    size_t count = ret->body->n_attempts;
    ret->attempts = count > 0 ? ret->body->attempts[count - 1]->number : 0;
}

void letter_set_body(Letter *letter, const Stentor__V1__DeadLetter *body, Arena *arena)
{
    letter->body = body;
    letter->event = read_event(body, arena);
    letter->notification_id = find_notification(letter);
}

LetterAddress letter_address(const Letter *letter)
{
    const ProtobufCMessageDescriptor *type =
        letter->event != NULL ? letter->event->descriptor : NULL;
    const void *event = letter->event;
    LetterAddress address = {.hash = NULL};
    ProtobufCBinaryData hash = {.len = 0};
    if (type == &stentor__v1__notification_request__descriptor) {
        const Stentor__V1__NotificationRequest *request = event;
        address = (LetterAddress){(Channel)request->channel, (Category)request->category, NULL};
        hash = request->address_hash;
    } else if (type == &stentor__v1__rendered__descriptor) {
        const Stentor__V1__Rendered *rendered = event;
        address = (LetterAddress){(Channel)rendered->channel, (Category)rendered->category, NULL};
        hash = rendered->address_hash;
    }
    address.hash = hash.len == SUPPRESSION_HASH_LEN ? hash.data : NULL;
    return address;
}

bool letter_end_reported(const Letter *letter)
{
    if (letter->body == NULL) {
        return false;
    }
    Str reason = str_from(letter->body->reason);
    // The reason tells of letters from before there was a code.
    return letter->body->reason_code[0] != '\0' || str_starts(reason, STR("retries_exhausted")) ||
           (str_starts(reason, STR("poison message")) && is_notification(letter->body->meta));
}

bool letter_holds_work(const Letter *letter)
{
    static const char *const ways[] = {"ntf.request.", "ntf.rendered.", "ntf.deferred."};
    bool work = false;
    for (size_t i = 0; letter->body != NULL && i < sizeof ways / sizeof *ways; i++) {
        work = work || str_starts(str_from(letter->body->subject), str_from(ways[i]));
    }
    return work && !str_eq(letter->stage, STR("archiver"));
}
