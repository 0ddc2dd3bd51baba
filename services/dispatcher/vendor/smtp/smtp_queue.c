// SPDX-License-Identifier: Apache-2.0
// Mails that wait for a connection, lane by lane, and the choice of the next for a place.
#include <assert.h>

#include "services/dispatcher/vendor/smtp/smtp_pool_internal.h"

// After this many mails the lowest lane goes first, so that it never starves.
enum { FAIRNESS = 16 };

void smtp_queue_push(SmtpPool *pool, Mail *mail)
{
    MailQueue *queue = &pool->lanes[mail->lane];
    mail->next = NULL;
    if (queue->tail == NULL) {
        queue->head = mail;
    } else {
        queue->tail->next = mail;
    }
    queue->tail = mail;
    pool->queued++;
}

void smtp_queue_push_front(SmtpPool *pool, Mail *mail)
{
    MailQueue *queue = &pool->lanes[mail->lane];
    mail->next = queue->head;
    queue->head = mail;
    if (queue->tail == NULL) {
        queue->tail = mail;
    }
    pool->queued++;
}

static Mail *pop(SmtpPool *pool, MailQueue *queue)
{
    Mail *mail = queue->head;
    if (mail != NULL) {
        queue->head = mail->next;
        if (queue->head == NULL) {
            queue->tail = NULL;
        }
        mail->next = NULL;
        pool->queued--;
    }
    return mail;
}

bool smtp_queue_has(const SmtpPool *pool, Priority lowest)
{
    for (int lane = 0; lane <= (int)lowest; lane++) {
        if (pool->lanes[lane].head != NULL) {
            return true;
        }
    }
    return false;
}

Mail *smtp_queue_pop(SmtpPool *pool, Priority lane)
{
    return pop(pool, &pool->lanes[lane]);
}

// ---- the next mail ----

static bool holds(const SmtpPlace *place, Str tenant)
{
    for (int i = 0; i < PLACE_MAILS; i++) {
        if (place->mails[i] != NULL && str_eq(place->mails[i]->tenant, tenant)) {
            return true;
        }
    }
    return false;
}

static bool has_its_part(const SmtpPool *pool, const Mail *mail)
{
    unsigned count = 0;
    for (unsigned i = 0; i < pool->options.connections; i++) {
        count += holds(&pool->places[i], mail->tenant) ? 1 : 0;
    }
    return count >= pool->tenant_max[mail->lane];
}

typedef struct Found {
    MailQueue *queue;
    Mail *before; // NULL: it is the first
    Mail *mail;
} Found;

// The lane's first mail that goes to this place, or may go to any.
static bool find_fair(const SmtpPool *pool, MailQueue *queue, const SmtpPlace *place, Found *ret)
{
    Mail *before = NULL;
    for (Mail *mail = queue->head; mail != NULL; before = mail, mail = mail->next) {
        if (holds(place, mail->tenant) || !has_its_part(pool, mail)) {
            *ret = (Found){queue, before, mail};
            return true;
        }
    }
    return false;
}

static Mail *pop_found(SmtpPool *pool, const Found *found)
{
    if (found->before == NULL) {
        return pop(pool, found->queue);
    }
    found->before->next = found->mail->next;
    if (found->queue->tail == found->mail) {
        found->queue->tail = found->before;
    }
    found->mail->next = NULL;
    pool->queued--;
    return found->mail;
}

// `order`: the lanes, in the order of search. No other tenant's mail is put behind one of a tenant
// that has its part: the answer may take long, and the mail is next at another place.
static Mail *pop_fair(SmtpPool *pool, const SmtpPlace *place, const Priority *order, int count)
{
    const Mail *ahead = place->mails[0];
    bool tied = ahead != NULL && has_its_part(pool, ahead);
    Found found;
    for (int i = 0; i < count; i++) {
        if (find_fair(pool, &pool->lanes[order[i]], place, &found)) {
            return tied && !holds(place, found.mail->tenant) ? NULL : pop_found(pool, &found);
        }
    }
    return NULL;
}

Mail *smtp_queue_next(SmtpPool *pool, const SmtpPlace *place)
{
    Priority order[PRIORITY_COUNT];
    int count = (int)place->lowest + 1;
    bool from_below = place->lowest == PRIORITY_LOW && ++pool->taken % FAIRNESS == 0;
    for (int i = 0; i < count; i++) {
        order[i] = (Priority)(from_below ? count - 1 - i : i);
    }
    if (company_is(&pool->company, (int64_t)uv_now(pool->loop) * 1000)) {
        return pop_fair(pool, place, order, count);
    }
    Mail *mail = NULL;
    for (int i = 0; i < count && mail == NULL; i++) {
        mail = pop(pool, &pool->lanes[order[i]]);
    }
    return mail;
}

void smtp_queue_given(SmtpPlace *place, Mail *mail)
{
    int i = 0;
    while (place->mails[i] != NULL) {
        i++;
        assert(i < PLACE_MAILS);
    }
    place->mails[i] = mail;
}

void smtp_queue_answered(SmtpPlace *place, const Mail *mail)
{
    if (place->mails[0] == mail) {
        place->mails[0] = place->mails[1];
        place->mails[1] = NULL;
    } else if (place->mails[1] == mail) {
        place->mails[1] = NULL;
    }
}
