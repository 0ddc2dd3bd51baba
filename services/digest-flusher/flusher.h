// SPDX-License-Identifier: Apache-2.0
// stentor-digest-flusher: holds all work that waits for a time. intake.h takes DEFERRED into
// digest_flusher.due_work, emit.h publishes what is due; work.h turns a deferred event into due
// work. This file starts and stops them, and counts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec flusher_service;
