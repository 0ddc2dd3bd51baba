// SPDX-License-Identifier: Apache-2.0
// The service: builds the parts, hands configuration to them, turns the 50 ms tick, drains.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec ingest_service;
