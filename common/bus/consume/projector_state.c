// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/bus/consume/projector_internal.h"

// ---- state ----

static const char *state_name(ProjectorState state)
{
    switch (state) {
    case PROJECTOR_STANDBY:
        return "standby";
    case PROJECTOR_LOADING:
        return "loading";
    case PROJECTOR_FOLDING:
        return "folding";
    case PROJECTOR_FLUSHING:
        return "flushing";
    case PROJECTOR_DROPPING:
        return "dropping";
    case PROJECTOR_FAILED:
        return "failed";
    case PROJECTOR_STOPPED:
        return "stopped";
    }
    return "";
}

void projector_change_state(Projector *p, ProjectorState next)
{
    bool routine = (p->state == PROJECTOR_FOLDING && next == PROJECTOR_FLUSHING) ||
                   (p->state == PROJECTOR_FLUSHING && next == PROJECTOR_FOLDING);
    if (!routine && p->state != next) {
        LOG(LOG_INFO, "projector moves", log_text("projection", p->options.name),
            log_text("from", state_name(p->state)), log_text("to", state_name(next)));
    }
    p->state = next;
}

static void on_timer_due(uv_timer_t *timer)
{
    projector_move_on(timer->data);
}

void projector_wait_ms(Projector *p, int ms)
{
    uv_timer_start(&p->timer, on_timer_due, (uint64_t)ms, 0);
}

int projector_next_retry(Projector *p)
{
    int ms = p->retry_ms;
    p->retry_ms = 2 * ms > PROJECTOR_RETRY_MAX_MS ? PROJECTOR_RETRY_MAX_MS : 2 * ms;
    return ms;
}

// ---- dropping ----

static void on_reader_freed(void *ctx)
{
    Source *source = ctx;
    source->reader = NULL;
    source->projector->readers_open--;
    projector_move_on(source->projector);
}

void projector_drop(Projector *p)
{
    if (p->state == PROJECTOR_DROPPING) {
        return;
    }
    projector_change_state(p, PROJECTOR_DROPPING);
    if (p->folded + p->air_folded > 0 || p->handlers.wait_ms != NULL) {
        p->handlers.committed(p->ctx, NULL);
    }
    p->folded = 0;
    p->folded_bytes = 0;
    p->in_air = false;
    p->air_folded = 0;
    arena_reset(p->arena);
    arena_reset(p->air_arena);
    for (size_t i = 0; i < p->positions.count; i++) {
        if (p->sources[i].reader != NULL) {
            p->tails_lost += p->options.readers->tails_lost(p->sources[i].reader);
            p->options.readers->free(p->sources[i].reader, on_reader_freed, &p->sources[i]);
        }
    }
    projector_wait_ms(p, 0);
}

void projector_reload(Projector *projector)
{
    if (projector->state == PROJECTOR_FOLDING || projector->state == PROJECTOR_FLUSHING) {
        projector_drop(projector);
    }
}

void projector_fail(Projector *p, const Error *err)
{
    if (p->failure[0] != '\0') {
        return;
    }
    snprintf(p->failure, sizeof p->failure, "%s", err->text);
    LOG(LOG_ERROR, "projection stopped, an operator must act",
        log_text("projection", p->options.name), log_error(err));
    projector_drop(p);
}

void projector_fail_or_retry(Projector *p, const Error *err)
{
    if (!p->stopping && p->handlers.refused != NULL && p->handlers.refused(p->ctx, err)) {
        projector_wait_ms(p, projector_next_retry(p));
    } else {
        projector_fail(p, err);
    }
}

// ---- what is asked ----

bool projector_active(const Projector *projector)
{
    return projector->state == PROJECTOR_FOLDING || projector->state == PROJECTOR_FLUSHING;
}

const char *projector_failure(const Projector *projector)
{
    return projector->failure[0] != '\0' && projector->state != PROJECTOR_FLUSHING
               ? projector->failure
               : NULL;
}

uint64_t projector_lag(const Projector *projector)
{
    return projector->folded + projector->air_folded + projector_unread(projector);
}

uint64_t projector_unread(const Projector *projector)
{
    uint64_t lag = 0;
    for (size_t i = 0; i < projector->positions.count; i++) {
        if (projector->sources[i].reader != NULL) {
            lag += projector->options.readers->lag(projector->sources[i].reader);
        }
    }
    return lag;
}

bool projector_caught_up(const Projector *projector)
{
    for (size_t i = 0; i < projector->positions.count; i++) {
        if (!projector->sources[i].caught_up) {
            return false;
        }
    }
    return projector_active(projector);
}

bool projector_has_read(const Projector *projector, const char *stream)
{
    for (size_t i = 0; i < projector->positions.count; i++) {
        if (strcmp(projector->positions.at[i].stream, stream) == 0) {
            return projector->sources[i].caught_up;
        }
    }
    return false;
}

uint64_t projector_position(const Projector *projector, const char *stream)
{
    for (size_t i = 0; i < projector->positions.count; i++) {
        if (strcmp(projector->positions.at[i].stream, stream) == 0) {
            return projector->positions.at[i].stored;
        }
    }
    return 0;
}

uint64_t projector_tails_lost(const Projector *projector)
{
    uint64_t count = projector->tails_lost;
    for (size_t i = 0; i < projector->positions.count; i++) {
        const void *reader = projector->sources[i].reader;
        count += reader != NULL && projector_active(projector)
                     ? projector->options.readers->tails_lost(reader)
                     : 0;
    }
    return count;
}
