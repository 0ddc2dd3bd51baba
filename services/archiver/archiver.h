// SPDX-License-Identifier: Apache-2.0
// stentor-archiver: folds REQUEST_<LANE> and STATUS into the history tables. common/history has the
// fold and its statements; this part connects them to the projector, creates partitions twelve
// months ahead, and counts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec archiver_service;
