// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/deadletters/letter_view.h"

#include "common/base/clock.h"

static const int64_t TIME_MAX_US = INT64_C(253402300800000000); // 10000-01-01

json_t *letter_text(Str text)
{
    json_t *json = json_stringn(text.ptr != NULL ? text.ptr : "", text.len);
    return json != NULL ? json : json_string("?");
}

static json_t *time_json(int64_t at_us)
{
    char at[CLOCK_RFC3339_SIZE];
    if (at_us <= 0 || at_us >= TIME_MAX_US) {
        return json_null();
    }
    clock_format(at_us, at);
    return json_string(at);
}

static void set(json_t *object, const char *name, json_t *value)
{
    (void)json_object_set_new(object, name, value);
}

static void set_attempt(json_t *object, const Stentor__V1__Attempt *attempt)
{
    set(object, "vendor", letter_text(str_from(attempt->vendor)));
    set(object, "code", letter_text(str_from(attempt->code)));
    set(object, "enhanced_code", letter_text(str_from(attempt->enhanced_code)));
}

static void set_resend(json_t *object, const Letter *letter, const ResendRules *rules, Arena *arena)
{
    Error why = {0};
    LetterClass class = letter_class(letter, rules, arena, &why);
    set(object, "resend", json_string(letter_class_name(class)));
    set(object, "resend_why", class == LETTER_SAFE ? json_null() : letter_text(str_from(why.text)));
}

json_t *letter_view(const Letter *letter, const ResendRules *rules, Arena *arena)
{
    const Stentor__V1__DeadLetter *body = letter->body;
    const Stentor__V1__Attempt *attempt = letter_attempt(letter);
    const char *id = letter->notification_id;
    json_t *object = json_object();
    set(object, "sequence", json_integer((json_int_t)letter->sequence));
    set(object, "stored_at", time_json(letter->stored_at_us));
    set(object, "stage", letter_text(letter->stage));
    set(object, "notification_id", id[0] != '\0' ? letter_text(str_from(id)) : json_null());
    set(object, "reason", letter_text(letter_reason(letter)));
    set(object, "detail",
        letter_text(str_from(body != NULL ? body->reason : letter->unreadable.text)));
    set(object, "attempts", json_integer(letter->attempts));
    if (attempt != NULL) {
        set_attempt(object, attempt);
    }
    set_resend(object, letter, rules, arena);
    return object;
}

static json_t *attempt_json(const Stentor__V1__Attempt *attempt)
{
    json_t *object = json_object();
    set(object, "number", json_integer(attempt->number));
    set(object, "outcome", json_string(outcome_name((Outcome)attempt->outcome)));
    set_attempt(object, attempt);
    set(object, "text", letter_text(str_from(attempt->text)));
    set(object, "started_at", time_json(attempt->started_at_us));
    set(object, "finished_at", time_json(attempt->finished_at_us));
    return object;
}

json_t *letter_view_whole(const Letter *letter, const ResendRules *rules, Arena *arena)
{
    json_t *object = letter_view(letter, rules, arena);
    const Stentor__V1__DeadLetter *body = letter->body;
    json_t *attempts = json_array();
    for (size_t i = 0; body != NULL && i < body->n_attempts; i++) {
        (void)json_array_append_new(attempts, attempt_json(body->attempts[i]));
    }
    set(object, "attempts", attempts);
    if (body == NULL) {
        return object;
    }
    set(object, "event_id", letter_text(str_from(body->meta->event_id)));
    set(object, "subject", letter_text(str_from(body->subject)));
    set(object, "stream", letter_text(str_from(body->stream)));
    set(object, "stream_sequence", json_integer((json_int_t)body->stream_sequence));
    set(object, "deliveries", json_integer(body->deliveries));
    set(object, "event_bytes", json_integer((json_int_t)body->payload.len));
    return object;
}
