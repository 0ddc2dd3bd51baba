// SPDX-License-Identifier: Apache-2.0
// stentor-dispatcher as a service: its options, checked once at the start, and the parts put
// together.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec dispatcher_service;
