// SPDX-License-Identifier: Apache-2.0
// One value of an option: from the text that a source has into its field, within the row's bounds.
#pragma once

#include "common/base/str.h"
#include "common/service/options.h"

// A text is copied (options_free frees it). ERROR_CONFIG names the option, the value (a secret's is
// hidden) and what is expected.
bool option_store(const Option *row, void *options, Str value, Error *err);
// true, yes, on, 1 and their opposites, in any case; false: it is none of them.
bool option_parse_bool(Str value, bool *ret_flag);
// Does the text begin as the names of options do: STENTOR_, or OTEL_ (OpenTelemetry's names)?
bool option_is_name(Str text);
// What follows -- in a flag, in capitals: "NATS_URL" of STENTOR_NATS_URL, OTEL_... whole.
const char *option_flag(const char *name);
