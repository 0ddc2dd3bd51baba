// SPDX-License-Identifier: Apache-2.0
// links: svc_cli
// Any bytes as a dead letter and as a reply of MSG.GET: shown as valid JSON, and sent again with an
// id and a subject that a stage reads, or refused as PERMANENT.
#include <stdlib.h>
#include <string.h>

#include "common/bus/jetstream/get_message.h"
#include "common/deadletter/resend_rules.h"
#include "services/cli/operate/dlq_show.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(json_t *json)
{
    char *text = json_dumps(json, JSON_COMPACT);
    if (text == NULL) {
        abort();
    }
    free(text);
    json_decref(json);
}

static void check_letter(const BusMessage *message, Arena *arena)
{
    static const ResendRules rules = {.now_us = 1763648968320000, .may_double = true};
    Letter letter;
    letter_read(message, arena, &letter);
    check_json(letter_row(&letter, rules.now_us, arena));
    check_json(letter_whole(&letter, rules.now_us, arena));
    Resend resend;
    Error err = {0};
    if (!letter_resend(&letter, &rules, arena, &resend, &err)) {
        if (err.kind != ERROR_PERMANENT) {
            abort();
        }
    } else if (resend.out.event_id.len == 0 || strpbrk(resend.out.subject, " *>\r\n") != NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    BusMessage message = {
        .subject = STR("ntf.dead.dispatcher.demo"),
        .payload = str_of(data, size),
        .stream = "DEAD",
        .sequence = 1,
    };
    check_letter(&message, arena);
    bool found = false;
    Error err = {0};
    if (get_message_reply(str_of(data, size), "DEAD", arena, &message, &found, &err) && found) {
        check_letter(&message, arena);
    }
    arena_free(arena);
    return 0;
}
