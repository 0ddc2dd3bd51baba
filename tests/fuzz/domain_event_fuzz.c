// SPDX-License-Identifier: Apache-2.0
// links: svc_ingest
// Any bytes as a domain event: refused with words, or an object within its bounds that a letter
// carries and gives back. The first byte chooses how it is written: JSON (of an order or not, an
// envelope of MassTransit or not), a CloudEvent in binary mode, or one of the protobuf messages.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/domain/domain_event.h"
#include "common/trigger/trigger_apply.h"
#include "common/trigger/trigger_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t NOW_US = INT64_C(1795199136000000);

static DomainInput input_of(uint8_t how, Str payload)
{
    static const char *const types[] = {"PlaceOrder",       "CompleteOrder",    "CancelOrder",
                                        "CleanUpSentEmail", "ResendErrorEmail", "UserCheckedOut",
                                        "StatusChanged",    "PlaceOrderTimeout"};
    DomainInput input = {
        .tenant = STR("acme"),
        .type = STR("stay"),
        .payload = payload,
        .stream = "EVENTS",
        .sequence = 7,
        .stored_at_us = NOW_US,
    };
    if (how % 3 == 1) {
        input.ce_version = STR("1.0");
        input.ce_id = str_slice(payload, 0, 40);
        input.ce_source = str_slice(payload, 0, how / 3);
        input.ce_seen = str_slice(payload, 0, 30);
    } else if (how % 3 == 2) {
        input.content_type = STR("application/protobuf");
        input.message_type = str_from(types[how / 3 % 8]);
    } else if (how > 9) {
        input.type = str_from(types[how / 3 % 8]);
        input.content_type = how % 2 == 1 ? STR("application/vnd.masstransit+json") : STR_EMPTY;
    }
    return input;
}

static void check_event(const DomainEvent *event)
{
    assert(json_is_object(event->data));
    assert(event->variables.len >= 2 && event->variables.len <= DOMAIN_DATA_MAX);
    assert(str_is_utf8(event->variables));
    assert(event->identity.len > 0 && event->identity.len <= DOMAIN_IDENTITY_MAX);
    assert(!str_has_control(event->identity) && str_is_utf8(event->identity));
    assert(event->id_at_us > NOW_US - INT64_C(121) * 86400 * 1000000);
    assert(event->id_at_us <= NOW_US + 60 * INT64_C(1000000));
}

static void check_letter(const DomainEvent *event, Arena *arena)
{
    DomainInput again = input_of(0, domain_event_letter(event, STR("remind"), arena));
    again.message_id = event->identity;
    DomainEvent copy;
    Error err = {0};
    if (!domain_event_read(&again, arena, &copy, &err)) {
        assert(0 && "a letter cannot be read again");
    }
    assert(str_eq(copy.only, STR("remind")) && str_eq(copy.identity, event->identity));
    assert(copy.id_at_us == event->id_at_us && str_eq(copy.variables, event->variables));
    domain_event_free(&copy);
}

static void apply(const DomainEvent *event, Arena *arena)
{
    char *cancels[] = {(char[]){"gone"}};
    static const char *const resolvers[] = {"address:email",  "recipient:a.b", "identity:guest:0",
                                            "recipients:all", "primary_guest", "tenant_admins",
                                            "iam_subject",    "unknown"};
    Stentor__V1__Trigger trigger;
    stentor__v1__trigger__init(&trigger);
    trigger.key = (char[]){"remind"};
    trigger.template_ = (char[]){"welcome"};
    trigger.anchor = (char[]){"at"};
    trigger.subject_path = (char[]){"id"};
    trigger.obsoleted_by = cancels;
    trigger.n_obsoleted_by = 1;
    for (size_t i = 0; i < sizeof resolvers / sizeof resolvers[0]; i++) {
        TriggerPlan plan;
        Error err = {0};
        trigger.resolver = arena_cstr(arena, str_from(resolvers[i]));
        if (!trigger_plan(&trigger, NULL, event, NOW_US, arena, &plan, &err)) {
            assert(err.kind == ERROR_PERMANENT && strstr(err.text, "trigger 'remind'") != NULL);
            continue;
        }
        assert(plan.count <= TRIGGER_RECIPIENTS_MAX && (!plan.late || plan.count == 0));
        if (trigger_choose(&plan, event, arena, &err) == TRIGGER_NOT_FOUND) {
            assert(plan.chooses && strstr(err.text, "found no recipient") != NULL);
        }
        for (size_t n = 0; n < plan.count; n++) {
            Request request;
            (void)trigger_request(&plan, &plan.targets[n], NOW_US, arena, &request, &err);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new(0);
    uint8_t how = size > 0 ? data[0] : 0;
    DomainInput input = input_of(how, str_of(data + (size > 0), size - (size > 0)));
    DomainEvent event;
    Error err = {0};
    if (domain_event_read(&input, arena, &event, &err)) {
        check_event(&event);
        check_letter(&event, arena);
        apply(&event, arena);
        domain_event_free(&event);
    } else {
        assert(err.kind == ERROR_PERMANENT && err.text[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
