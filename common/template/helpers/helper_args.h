// SPDX-License-Identifier: Apache-2.0
// What every helper asks of its arguments, and how it answers.
#pragma once

#include "common/template/helpers/helper.h"

const Value *helper_named(const HelperArgs *args, const char *name);
bool helper_is_nothing(const Value *value);
bool helper_is_true(const Value *value);
Value helper_truth(bool yes);
// Copies what stands in run->work into the render's memory.
bool helper_give_text(HelperRun *run, Value *ret, Error *err);
// An argument as text: a text as it is, anything else as it prints.
bool helper_text_of(HelperRun *run, const Value *value, Str *ret, Error *err);
bool helper_named_text(
    HelperRun *run, const HelperArgs *args, const char *name, Str *ret, Error *err);
// The argument behind the value, a style or a code.
bool helper_second_text(HelperRun *run, const HelperArgs *args, Str *ret, Error *err);
const char *helper_kind_name(const Value *value);
// A number, or a text that is one, as its digits. What a double prints as is bounded by itself.
bool helper_decimal_of(HelperRun *run, const Value *value, Str *ret, Error *err);
bool helper_real_of(HelperRun *run, const Value *value, double *ret);
bool helper_digits_of(HelperRun *run, const HelperArgs *args, int *ret, Error *err);
