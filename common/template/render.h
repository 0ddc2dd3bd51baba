// SPDX-License-Identifier: Apache-2.0
// What the files of a render share. Not public: render.c runs operations, invoke.c partials.
#pragma once

#include "common/template/html_url.h"
#include "common/template/program.h"

typedef enum LoopKind { LOOP_NONE, LOOP_ARRAY, LOOP_OBJECT } LoopKind;

enum { NO_FRAME = -1 };

typedef struct Frame {
    Value context;
    int outer;  // frame of the context around this one; NO_FRAME in a partial's first
    int around; // the same, but out of partials too: where names are searched
    bool adds;  // false: the context is the same as the one around, so `../` does not stop here
    LoopKind loop;
    const json_t *items;
    void *member; // of LOOP_OBJECT
    size_t index;
    size_t count;
} Frame;

// What a partial that stands alone on its line puts before each of its own lines.
typedef struct Indent {
    Str text;
    const struct Indent *outer;
} Indent;

struct TemplateTools {
    Formats *formats;
    Arena *arena;
    Buf work;
};

// Inline partials in force, those of one body; all of them: along `outer`.
typedef struct Inlines {
    const Program *body;
    Str partial;                      // whose source they stand in; empty: the template's own
    const struct Activation *definer; // whose frames their operands may name
    int around;                       // frame that `../` leads to from them
    const struct Inlines *seen;       // by them
    const struct Inlines *outer;
} Inlines;

// The body of a {{#> name}}, which runs where it is called and means what it meant where it stands.
typedef struct Block {
    const Program *program;
    const struct Activation *definer;
    int around;
} Block;

// A program that runs, on the stack of run_partial() and run_body(): what it refers to is further
// down there.
typedef struct Activation {
    const Program *program;
    Str partial;                      // whose source it is; empty: the template's own
    const struct Activation *definer; // the one around a body; NULL: a whole source
    const Block *block;               // {{> @partial-block}}; NULL: there is none
    const Inlines *inlines;
    Inlines own;
    int around; // frame that `../` leads to from its first context; NO_FRAME: none
    int base;   // frame that was on top when it began
} Activation;

typedef struct Render {
    const TemplateContext *context;
    const TemplateSet *set;
    const Activation *activation; // that runs
    TemplateTools *tools;         // NULL: no helper has been called yet
    HelperRun helper;
    Value root;
    Frame frames[TEMPLATE_DEPTH_MAX + 1];
    int top;     // frame that was entered last
    int current; // frame whose context is in force
    const Indent *indent;
    bool line_begins; // the next byte of the program's own text begins a line
    bool placed;      // the error has its line and column
    uint32_t rounds;
    uint32_t steps;
    uint32_t look_at; // steps after which limits are looked at
    HtmlScan html;    // of `out`; it follows only as far as it is asked
    size_t out_limit;
    Buf *out;
} Render;

// Runs `next`, whose first frame is entered already; the caller puts `render->activation` back.
bool render_run(Render *render, Activation *next, Error *err);
bool render_evaluate(Render *render, const Operand *operand, Value *ret, Error *err);
Value render_context(const Render *render); // the one in force
// A frame on top; NULL: `err` says that it is one too many.
Frame *render_push(Render *render, Error *err);
void render_pop(Render *render, int current);
void render_set_context(Render *render, Frame *frame, Value context);
bool render_count_round(Render *render, Error *err);

// OP_PARTIAL and OP_BODY.
bool invoke_partial(Render *render, const PartialCall *call, Error *err);
bool invoke_body(Render *render, const Program *body, Error *err);

// Frames (render_frame.c): of a loop, of its next round, of {{#with}}; and that a limit ended the
// render.
bool render_begin_round(Render *render, Frame *frame, Error *err);
bool render_enter_loop(Render *render, const Value *value, Error *err);
bool render_enter_context(Render *render, Value value, Error *err);
void render_set_over(Render *render);
