// SPDX-License-Identifier: Apache-2.0
// The service: takes signed vendor callbacks, stores each on INBOUND before the answer, and runs
// the correlation.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec receiver_service;
