// SPDX-License-Identifier: Apache-2.0
// The header traceparent (W3C Trace Context). Foreign bytes: it goes into tables and into every
// message that follows, and an event must not be refused for it.
#pragma once

#include <stdbool.h>

#include "common/base/str.h"

// "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; of a later version perhaps with more
// behind another '-', 128 bytes at most. Pure.
bool trace_is_parent(Str text);
