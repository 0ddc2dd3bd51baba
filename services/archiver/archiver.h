// SPDX-License-Identifier: Apache-2.0
// stentor-archiver: folds REQUEST_<LANE> and STATUS into the history tables. The fold is fold.h,
// the statements are history_sql.h; this is what ties them to the projector, keeps partitions
// twelve months ahead, and counts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec archiver_service;
