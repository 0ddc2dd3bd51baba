// SPDX-License-Identifier: Apache-2.0
// Watchdog: a loop that stands for so much of its own processor time runs in an endless loop (or
// a far too long one), and its process ends itself by SIGXCPU after a line
// on standard error. Processor time, not wall time: a stopped process, a paused machine or a slow
// disk never counts. Its messages are redelivered to other processes; a message that does this to
// five processes in a row is quarantined (common/bus/consume/guard/guard.h). One per process, of
// the calling thread.
#pragma once

#include <stdint.h>

#include "common/base/error.h"

bool watchdog_start(const char *service, int64_t limit_ms, Error *err);
void watchdog_feed(void); // the loop turns; nothing when it was not started
void watchdog_stop(void);
