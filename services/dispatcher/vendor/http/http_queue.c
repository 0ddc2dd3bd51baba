// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/vendor/http/http_queue.h"

enum { FAIRNESS = 16, RESERVED_SHARE = 8 };

void http_queue_push(HttpQueue *queue, Mail *mail)
{
    mail->next = NULL;
    if (queue->lanes[mail->lane].tail == NULL) {
        queue->lanes[mail->lane].head = mail;
    } else {
        queue->lanes[mail->lane].tail->next = mail;
    }
    queue->lanes[mail->lane].tail = mail;
    queue->count++;
}

void http_queue_push_front(HttpQueue *queue, Mail *mail)
{
    mail->next = queue->lanes[mail->lane].head;
    queue->lanes[mail->lane].head = mail;
    if (mail->next == NULL) {
        queue->lanes[mail->lane].tail = mail;
    }
    queue->count++;
}

static Mail *pop(HttpQueue *queue, int lane)
{
    Mail *mail = queue->lanes[lane].head;
    if (mail != NULL) {
        queue->lanes[lane].head = mail->next;
        queue->lanes[lane].tail = mail->next != NULL ? queue->lanes[lane].tail : NULL;
        mail->next = NULL;
        queue->count--;
    }
    return mail;
}

// How many calls mails of the lane may hold.
static unsigned room_of(int lane, unsigned calls)
{
    unsigned reserved = calls < 2 ? 0 : (calls + RESERVED_SHARE - 1) / RESERVED_SHARE;
    unsigned raised = calls < 3 ? 0 : reserved;
    if (lane <= PRIORITY_HIGH) {
        return calls;
    }
    return lane < PRIORITY_LOW ? calls - reserved : calls - reserved - raised;
}

Mail *http_queue_next(HttpQueue *queue, unsigned running, unsigned calls)
{
    if (queue->count == 0) {
        return NULL;
    }
    bool from_below = (queue->taken + 1) % FAIRNESS == 0;
    for (int i = 0; i < PRIORITY_COUNT; i++) {
        int lane = from_below ? PRIORITY_COUNT - 1 - i : i;
        Mail *mail = running < room_of(lane, calls) ? pop(queue, lane) : NULL;
        if (mail != NULL) {
            queue->taken++;
            return mail;
        }
    }
    return NULL;
}

Mail *http_queue_pop(HttpQueue *queue)
{
    for (int lane = 0; lane < PRIORITY_COUNT; lane++) {
        if (queue->lanes[lane].head != NULL) {
            return pop(queue, lane);
        }
    }
    return NULL;
}

Mail *http_queue_pop_if(HttpQueue *queue, bool (*is)(const Mail *mail))
{
    for (int lane = 0; lane < PRIORITY_COUNT; lane++) {
        if (queue->lanes[lane].head != NULL && is(queue->lanes[lane].head)) {
            return pop(queue, lane);
        }
    }
    return NULL;
}
