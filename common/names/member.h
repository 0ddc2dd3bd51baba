// SPDX-License-Identifier: Apache-2.0
// Members of JSON objects by name, however the publisher spells them: "order_id", "orderId" and
// "OrderId" are one name. Everything that reads a member of a domain event reads it with this. Pure.
//
// Law: the exact name wins, whatever it holds. Only where it is absent counts the first member, in
// the order of the text, whose name differs in case of ASCII letters and in '_' alone.
#pragma once

#include <jansson.h>

#include "common/base/str.h"

// true: the same letters and digits in the same order, case and '_' aside. Names of '_' alone are
// only like themselves.
bool member_is_alike(Str a, Str b);
// Borrowed from `object`; NULL: there is none, or the only ones that are alike hold null.
json_t *member_find(const json_t *object, Str name);
// The same; NULL for null as well.
json_t *member_value(const json_t *object, const char *name);
