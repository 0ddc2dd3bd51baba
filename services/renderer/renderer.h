// SPDX-License-Identifier: Apache-2.0
// Renderer: turns an accepted request and its template version into final content, sealed for the
// dispatcher. Stores nothing; reads CONFIG into memory and the recipients' keys from Postgres. See
// README.md.
#pragma once

#include "common/service/service.h"

extern const ServiceSpec renderer_service;
