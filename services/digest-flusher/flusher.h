// SPDX-License-Identifier: Apache-2.0
// stentor-digest-flusher: the only clock of the pipeline. intake.h takes DEFERRED into
// digest_flusher.due_work, emit.h publishes what is due; work.h says what a deferred event becomes.
// This ties the three together, and counts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec flusher_service;
