// SPDX-License-Identifier: Apache-2.0
#include "common/template/helpers/helper_compare.h"

#include "common/template/helpers/helper_args.h"

static bool same(HelperRun *run, const Value *a, const Value *b)
{
    bool numbers = (a->kind == VALUE_INT || a->kind == VALUE_REAL) &&
                   (b->kind == VALUE_INT || b->kind == VALUE_REAL);
    if (a->kind == VALUE_TEXT && b->kind == VALUE_TEXT) {
        run->steps += steps_of(a->text.len);
    }
    if (!numbers || a->kind == b->kind) {
        return value_same(a, b);
    }
    double x = 0;
    double y = 0;
    return helper_real_of(run, a, &x) && helper_real_of(run, b, &y) && !(x < y) && !(x > y);
}

bool helper_eq(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)err;
    *ret = helper_truth(same(run, &args->params[0], &args->params[1]));
    return true;
}

bool helper_ne(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)err;
    *ret = helper_truth(!same(run, &args->params[0], &args->params[1]));
    return true;
}

// Numbers (and texts compared with a number) as numbers, two texts by their bytes. false: not
// comparable.
static bool compare(HelperRun *run, const HelperArgs *args, int *ret)
{
    const Value *a = &args->params[0];
    const Value *b = &args->params[1];
    double x = 0;
    double y = 0;
    if (a->kind == VALUE_TEXT && b->kind == VALUE_TEXT) {
        run->steps += steps_of(a->text.len);
        *ret = str_cmp(a->text, b->text);
        return true;
    }
    if (!helper_real_of(run, a, &x) || !helper_real_of(run, b, &y)) {
        return false;
    }
    *ret = x < y ? -1 : x > y ? 1 : 0;
    return true;
}

bool helper_lt(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    int order = 0;
    (void)err;
    *ret = helper_truth(compare(run, args, &order) && order < 0);
    return true;
}

bool helper_gt(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    int order = 0;
    (void)err;
    *ret = helper_truth(compare(run, args, &order) && order > 0);
    return true;
}

bool helper_le(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    int order = 0;
    (void)err;
    *ret = helper_truth(compare(run, args, &order) && order <= 0);
    return true;
}

bool helper_ge(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    int order = 0;
    (void)err;
    *ret = helper_truth(compare(run, args, &order) && order >= 0);
    return true;
}

bool helper_and(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)err;
    for (size_t i = 0; i < args->count; i++) {
        *ret = args->params[i];
        if (!helper_is_true(ret)) {
            return true;
        }
    }
    return true;
}

bool helper_or(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)err;
    for (size_t i = 0; i < args->count; i++) {
        *ret = args->params[i];
        if (helper_is_true(ret)) {
            return true;
        }
    }
    return true;
}

bool helper_not(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)err;
    *ret = helper_truth(!helper_is_true(&args->params[0]));
    return true;
}

bool helper_default(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)err;
    for (size_t i = 0; i < args->count; i++) {
        *ret = args->params[i];
        if (!helper_is_nothing(ret) && !(ret->kind == VALUE_TEXT && ret->text.len == 0)) {
            return true;
        }
    }
    return true;
}

bool helper_lookup(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    Str name;
    if (value_is_falsy(&args->params[0])) { // as Handlebars 4: `false` stays `false`
        *ret = args->params[0];
        return true;
    }
    if (helper_is_nothing(&args->params[1])) {
        *ret = (Value){.kind = VALUE_NONE};
        return true;
    }
    if (!helper_text_of(run, &args->params[1], &name, err)) {
        return false;
    }
    Segment segment = segment_of(name);
    *ret = value_member(&args->params[0], &segment, &run->steps);
    return true;
}

bool helper_log(HelperRun *run, const HelperArgs *args, Value *ret, Error *err)
{
    (void)run;
    (void)args;
    (void)err;
    *ret = (Value){.kind = VALUE_TEXT, .text = STR_EMPTY};
    return true;
}
