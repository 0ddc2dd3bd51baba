// SPDX-License-Identifier: Apache-2.0
#include "common/bus/jetstream/publish_entry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool grow(Publisher *p)
{
    if (p->block_count == BLOCKS_MAX) {
        return false;
    }
    Entry *block = xcalloc(BLOCK, sizeof *block);
    for (uint32_t i = BLOCK; i-- > 0;) {
        block[i].index = p->block_count * BLOCK + i;
        block[i].next = p->free;
        p->free = &block[i];
    }
    p->blocks[p->block_count++] = block;
    return true;
}

Entry *entry_acquire(Publisher *p, BusAcked on_acked, void *ctx)
{
    if (p->free == NULL && !grow(p)) {
        fprintf(stderr, "publish: %d refused publishes in one turn\n", BLOCKS_MAX * BLOCK);
        abort(); // a caller that ignores every refusal inside one turn: a bug
    }
    Entry *e = p->free;
    p->free = e->next;
    uint32_t index = e->index, generation = e->generation + 1;
    *e = (Entry){
        .index = index,
        .generation = generation,
        .on_acked = on_acked,
        .ctx = ctx,
        .born_ms = (int64_t)uv_now(p->loop),
        .older = p->newest};
    *(p->newest != NULL ? &p->newest->newer : &p->oldest) = e;
    p->newest = e;
    p->pending++;
    return e;
}

static void push(EntryQueue *queue, Entry *e)
{
    e->next = NULL;
    *(queue->last != NULL ? &queue->last->next : &queue->first) = e;
    queue->last = e;
    queue->count++;
}

Entry *entry_pop(EntryQueue *queue)
{
    Entry *e = queue->first;
    if (e != NULL) {
        queue->first = e->next;
        queue->last = queue->first == NULL ? NULL : queue->last;
        queue->count--;
    }
    return e;
}

static void unlink_from_queue(EntryQueue *queue, Entry *e)
{
    Entry *before = NULL;
    for (Entry *at = queue->first; at != NULL; before = at, at = at->next) {
        if (at == e) {
            *(before != NULL ? &before->next : &queue->first) = e->next;
            queue->last = queue->last == e ? before : queue->last;
            queue->count--;
            return;
        }
    }
}

void entry_enqueue(Publisher *p, Entry *e)
{
    e->state = ENTRY_QUEUED;
    push(e->slack ? &p->slack_queue : &p->queue, e);
}

void entry_leave_air(Publisher *p, Entry *e)
{
    if (e->state == ENTRY_SENT) {
        p->in_flight--;
        p->in_flight_bytes -= e->bytes;
        p->slack_in_flight -= e->slack ? 1 : 0;
    }
}

void entry_finish(Publisher *p, Entry *e, const Error *err, uint64_t sequence, bool duplicate)
{
    BusAcked on_acked = e->on_acked;
    void *ctx = e->ctx;
    p->acked += err == NULL ? 1 : 0;
    p->duplicates += duplicate ? 1 : 0;
    entry_leave_air(p, e);
    if (e->state == ENTRY_QUEUED) {
        unlink_from_queue(e->slack ? &p->slack_queue : &p->queue, e);
    }
    *(e->older != NULL ? &e->older->newer : &p->oldest) = e->newer;
    *(e->newer != NULL ? &e->newer->older : &p->newest) = e->older;
    link_discard(p->link, e->message);
    e->message = NULL;
    p->pending--;
    p->pending_bytes -= e->bytes;
    e->state = ENTRY_FREE;
    e->next = p->free;
    p->free = e;
    on_acked(ctx, err, sequence, duplicate);
}

void entry_refuse(Publisher *p, Entry *e, ErrorKind kind)
{
    e->state = ENTRY_REFUSED;
    e->refusal = (uint8_t)kind;
    push(&p->refused, e);
}
