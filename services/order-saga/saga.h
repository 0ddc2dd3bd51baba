// SPDX-License-Identifier: Apache-2.0
// stentor-order-saga: follows orders from UserCheckedOut to their end. consumer.h reads and writes,
// order.h and machine.h decide, outbox.h publishes, retention.h deletes old rows. This file starts
// and stops them, and counts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec saga_service;
