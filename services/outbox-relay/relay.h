// SPDX-License-Identifier: Apache-2.0
// stentor-outbox-relay: drains one outbox table of an application's own database into EVENTS, and
// writes back what becomes of the rows. What the table looks like is mapping.h, its SQL
// relay_sql.h; the parts that run are batch.h, feedback/feedback.h and maintenance.h. This ties
// them together, wakes them, and counts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec relay_service;
