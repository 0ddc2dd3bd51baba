// SPDX-License-Identifier: Apache-2.0
#include "services/order-saga/consumer_internal.h"

#include "common/base/clock.h"

// ---- the queue ----

void consumer_push_back(Queue *queue, Pending *event)
{
    event->next = NULL;
    if (queue->last == NULL) {
        queue->first = event;
    } else {
        queue->last->next = event;
    }
    queue->last = event;
}

Pending *consumer_pop(Queue *queue)
{
    Pending *event = queue->first;
    queue->first = event->next;
    queue->last = queue->first == NULL ? NULL : queue->last;
    return event;
}

void consumer_put_before(Queue *queue, Queue *front)
{
    if (front->last == NULL) {
        return;
    }
    front->last->next = queue->first;
    queue->last = queue->last == NULL ? front->last : queue->last;
    queue->first = front->first;
    *front = (Queue){NULL, NULL};
}

// ---- rejecting ----

// A resent dead letter is read by the saga alone, with headers or without: the other readers had
// the event the first time.
static void readdress(const Consumer *consumer, Delivery *delivery)
{
    BusMessage *message = &delivery->message;
    Str tenant = STR_EMPTY;
    Str type = STR_EMPTY;
    Error err = {0};
    DomainEvent event;
    if (!domain_subject(message->subject, &tenant, &type)) {
        return;
    }
    DomainInput input = domain_input(message, tenant, type, NULL);
    if (domain_event_read(&input, delivery->arena, &event, &err)) {
        message->payload = domain_event_letter(&event, STR(SAGA_LETTER_FOR), delivery->arena);
        message->event_id = event.identity;
        event_keep_letter(consumer->options.event_keys, clock_mono_us(), message, delivery->arena);
        domain_event_free(&event);
    } // else it is unreadable, and kept unchanged
}

void consumer_refuse(const Consumer *consumer, Delivery *delivery, const Error *err)
{
    if (err->kind == ERROR_PERMANENT && !event_is_sealed(delivery->message.payload)) {
        readdress(consumer, delivery);
    }
    delivery_settle(delivery, err);
}
