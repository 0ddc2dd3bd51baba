// SPDX-License-Identifier: Apache-2.0
// Mails that wait for a call, lane by lane, and which of them is next. Strict priority, but every
// 16th is taken from below, so that a lane is late and never starves. One call in eight (at least
// one of two) is for the lanes critical and high only, and the same number (at least one of three)
// is not for the lowest lane: a campaign to a slow vendor never holds them all. Pure.
#pragma once

#include "services/dispatcher/vendor/vendor.h"

typedef struct HttpQueue {
    struct {
        Mail *head, *tail;
    } lanes[PRIORITY_COUNT];
    size_t count;
    unsigned taken;
} HttpQueue;

void http_queue_push(HttpQueue *queue, Mail *mail);
void http_queue_push_front(HttpQueue *queue, Mail *mail);
// NULL: none that may go while `running` of `calls` are on the way.
Mail *http_queue_next(HttpQueue *queue, unsigned running, unsigned calls);
Mail *http_queue_pop(HttpQueue *queue); // any; NULL: it is empty
// The first of a lane for which `is` holds; mails of a lane expire nearly in order.
Mail *http_queue_pop_if(HttpQueue *queue, bool (*is)(const Mail *mail));
