// SPDX-License-Identifier: Apache-2.0
// The stack of frames: the contexts that blocks and loops enter and leave.
#include "common/template/render.h"

bool render_count_round(Render *render, Error *err)
{
    if (++render->rounds > TEMPLATE_ITERATIONS_MAX) {
        render_set_over(render);
        return error_set(
            err, ERROR_PERMANENT, "more than %d rounds of loops and partials in one render",
            TEMPLATE_ITERATIONS_MAX);
    }
    return true;
}

void render_set_context(Render *render, Frame *frame, Value context)
{
    bool has_outer = frame->outer != NO_FRAME;
    frame->context = context;
    render->steps += context.kind == VALUE_TEXT ? steps_of(context.text.len) : 0;
    frame->adds = !has_outer || !value_same(&context, &render->frames[frame->outer].context);
    render->current = frame->adds ? (int)(frame - render->frames) : frame->outer;
}

Frame *render_push(Render *render, Error *err)
{
    if (render->top == TEMPLATE_DEPTH_MAX) {
        error_set(
            err, ERROR_PERMANENT,
            "blocks and partials are more than %d deep; does a partial call "
            "itself without an end?",
            TEMPLATE_DEPTH_MAX);
        return NULL;
    }
    Frame *frame = &render->frames[++render->top];
    *frame = (Frame){.outer = render->current, .around = render->current};
    return frame;
}

void render_pop(Render *render, int current)
{
    render->top--;
    render->current = current;
}

bool render_begin_round(Render *render, Frame *frame, Error *err)
{
    const json_t *item = frame->loop == LOOP_ARRAY ? json_array_get(frame->items, frame->index)
                                                   : json_object_iter_value(frame->member);
    render_set_context(render, frame, value_of_json(item));
    return render_count_round(render, err);
}

bool render_enter_loop(Render *render, const Value *value, Error *err)
{
    Frame *frame = render_push(render, err);
    if (frame == NULL) {
        return false;
    }
    frame->items = value->json;
    frame->loop = value->kind == VALUE_ARRAY ? LOOP_ARRAY : LOOP_OBJECT;
    if (frame->loop == LOOP_ARRAY) {
        frame->count = json_array_size(value->json);
    } else {
        frame->count = json_object_size(value->json);
        frame->member = json_object_iter((json_t *)(uintptr_t)value->json);
    }
    return render_begin_round(render, frame, err);
}

bool render_enter_context(Render *render, Value value, Error *err)
{
    Frame *frame = render_push(render, err);
    if (frame == NULL) {
        return false;
    }
    render_set_context(render, frame, value);
    return true;
}
