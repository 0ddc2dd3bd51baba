// SPDX-License-Identifier: Apache-2.0
// stentor-outbox-relay: drains one outbox table of an application's own database into EVENTS, and
// writes the outcome back into the rows. mapping.h describes the table, relay_sql.h has its SQL;
// the parts that run are drain.h, feedback/feedback.h and maintenance.h. This file starts, wakes
// and stops them, and counts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec relay_service;
