// SPDX-License-Identifier: Apache-2.0
// Clock: the only place that reads time. Below the service layer time is an argument.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base/str.h"

enum { CLOCK_RFC3339_SIZE = 32 };

int64_t clock_now_us(void);        // wall, microseconds since 1970-01-01 UTC
int64_t clock_mono_us(void);       // monotonic, for measuring
int64_t clock_thread_cpu_us(void); // CPU time that this thread has used
// "2026-11-20T18:25:36.123456Z"
void clock_format(int64_t at_us, char out[CLOCK_RFC3339_SIZE]);
// RFC 3339 with 'Z' or an offset, fraction optional; false when it is not one or is outside
// 1970..9999.
bool clock_parse(Str text, int64_t *ret_us);
// First instant of the month that holds at_us, and of the one after, UTC.
void clock_month(int64_t at_us, int64_t *ret_start_us, int64_t *ret_end_us);
