// SPDX-License-Identifier: Apache-2.0
// stentor-order-saga: orders from UserCheckedOut to their end (system D). take.h reads and decides,
// order.h and machine.h say what is decided, outbox.h publishes, retention.h drops what is old.
// This ties them together, and counts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec saga_service;
