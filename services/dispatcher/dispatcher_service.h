// SPDX-License-Identifier: Apache-2.0
// stentor-dispatcher as a service: its options, checked once at the start, and its parts.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec dispatcher_service;
