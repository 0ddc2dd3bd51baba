// SPDX-License-Identifier: Apache-2.0
// The service that manages recipients, templates, tenants, keys, triggers and suppressions.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec gateway_service;
