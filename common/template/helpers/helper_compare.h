// SPDX-License-Identifier: Apache-2.0
// The helpers that compare and choose, as rows of the table in helper.c have them.
#pragma once

#include "common/template/helpers/helper.h"

bool helper_and(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
// The first argument that is there and no empty text; the last one if none is.
bool helper_default(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_eq(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_ge(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_gt(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_le(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
// Handlebars writes to its console; here there is none.
bool helper_log(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_lookup(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_lt(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_ne(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_not(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
bool helper_or(HelperRun *run, const HelperArgs *args, Value *ret, Error *err);
