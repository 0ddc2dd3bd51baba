// SPDX-License-Identifier: Apache-2.0
#include "common/trigger/trigger_try.h"

#include "common/base/clock.h"

typedef struct Trying {
    const DomainEvent *event;
    const Catalog *catalog;
    int64_t now_us;
    Arena *arena;
    json_t *problems;
} Trying;

static void set_str(json_t *object, const char *name, Str value)
{
    if (value.len > 0) {
        (void)json_object_set_new(object, name, json_stringn(value.ptr, value.len));
    }
}

static void set_time(json_t *object, const char *name, int64_t at_us)
{
    char text[CLOCK_RFC3339_SIZE];
    clock_format(at_us, text);
    (void)json_object_set_new(object, name, json_string(text));
}

static void add_problem(Trying *t, const char *text)
{
    json_t *value = json_string(text); // NULL when a cut went through a character
    (void)json_array_append_new(t->problems, value != NULL ? value : json_string("not UTF-8"));
}

static void tell_target(json_t *object, const Request *request, const Target *target)
{
    if (target->kind == TARGET_IDENTITY) {
        json_t *identity = json_object();
        set_str(identity, "type", str_from(identity_name(target->identity)));
        set_str(identity, "id", target->value);
        (void)json_object_set_new(object, "identity", identity);
    } else if (target->kind == TARGET_RECIPIENT) {
        set_str(object, "recipient_id", target->value);
    } else if (target->kind == TARGET_LABEL) {
        set_str(object, "label", target->value);
    } else {
        set_str(object, "to", request->to);
        set_str(object, "to_name", request->to_name);
    }
}

static json_t *tell_request(const Request *request, const Target *target)
{
    json_t *object = json_object();
    tell_target(object, request, target);
    set_str(object, "template", request->template_key);
    set_str(object, "template_version", request->template_version);
    set_str(object, "channel", str_from(channel_name(request->channel)));
    set_str(object, "category", str_from(category_name(request->category)));
    set_str(object, "priority", str_from(priority_name(request->priority)));
    set_str(object, "locale", request->locale);
    set_str(object, "cancel_key", request->cancel_key);
    if (request->scheduled_for_us > 0) {
        set_time(object, "scheduled_for", request->scheduled_for_us);
    }
    return object;
}

// A recipient is not looked up, so what its record would say is not checked.
static bool make_request(Trying *t, const TriggerPlan *plan, const Target *target, Request *ret)
{
    Error err = {0};
    FieldError wrong = {.field = ""};
    if (target->kind != TARGET_ADDRESS) {
        *ret = plan->draft;
        ret->channel = ret->channel == CHANNEL_NONE ? CHANNEL_EMAIL : ret->channel;
        ret->priority_unsaid = ret->priority == PRIORITY_NONE;
        ret->priority = ret->priority_unsaid ? PRIORITY_NORMAL : ret->priority;
    } else if (!trigger_request(plan, target, t->now_us, t->arena, ret, &err)) {
        add_problem(t, err.text);
        return false;
    }
    if (t->catalog != NULL &&
        !catalog_freeze(t->catalog, t->event->tenant, ret, t->arena, &wrong)) {
        add_problem(t, wrong.text);
    }
    return true;
}

// By the rules behind the first one that the event has something for.
static void tell_others(const TriggerPlan *plan, json_t *object)
{
    json_t *others = json_array();
    for (size_t i = 0; i < plan->count; i++) {
        const Target *target = &plan->targets[i];
        Request request = plan->draft;
        request.to = target->kind == TARGET_ADDRESS ? target->value : STR_EMPTY;
        if (target->rule != plan->targets[0].rule) {
            json_t *other = json_object();
            tell_target(other, &request, target);
            (void)json_array_append_new(others, other);
        }
    }
    if (json_array_size(others) > 0) {
        (void)json_object_set(object, "else", others);
    }
    json_decref(others);
}

static json_t *tell_plan(Trying *t, const TriggerPlan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->count; i++) {
        Request request;
        const Target *target = &plan->targets[i];
        if (target->rule == plan->targets[0].rule && make_request(t, plan, target, &request)) {
            json_t *object = tell_request(&request, target);
            tell_others(plan, object);
            (void)json_array_append_new(list, object);
        }
    }
    if (plan->bad_target != NULL) {
        add_problem(t, plan->bad_target);
    }
    return list;
}

json_t *trigger_try(
    const Stentor__V1__Trigger *trigger, const NamedResolvers *resolvers, const DomainInput *input,
    const Catalog *catalog, int64_t now_us, Arena *arena, Error *err)
{
    DomainEvent event;
    TriggerPlan plan;
    if (!domain_event_read(input, arena, &event, err)) {
        return NULL;
    }
    if (!trigger_plan(trigger, resolvers, &event, now_us, arena, &plan, err)) {
        domain_event_free(&event);
        return NULL;
    }
    Trying t = {&event, catalog, now_us, arena, json_array()};
    json_t *root = json_object();
    (void)json_object_set_new(root, "trigger", json_string(trigger->key));
    (void)json_object_set_new(root, "event_type", json_string(trigger->event_type));
    set_str(root, "resolver", str_from(trigger->resolver));
    (void)json_object_set_new(root, "enabled", json_boolean(!trigger->disabled));
    set_str(root, "source_event_id", event.identity);
    set_time(root, "produced_at", event.produced_at_us);
    set_time(root, "due_at", plan.at_us);
    (void)json_object_set_new(root, "too_late", json_boolean(plan.late));
    (void)json_object_set_new(root, "notifications", tell_plan(&t, &plan));
    (void)json_object_set(root, "variables", event.data);
    (void)json_object_set_new(root, "problems", t.problems);
    domain_event_free(&event);
    return root;
}
