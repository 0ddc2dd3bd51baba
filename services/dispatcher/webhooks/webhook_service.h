// SPDX-License-Identifier: Apache-2.0
// The dispatcher's other composition, `stentor-dispatcher --channels webhook`: tenants' webhooks
// and nothing else. It has a NATS user and a Postgres role of its own, "stentor-webhook".
#pragma once

#include "common/service/service.h"

extern const ServiceSpec webhook_service;

// Is that composition asked for: by `--channels webhook`, STENTOR_CHANNELS, or the program's name?
bool webhook_is_wanted(int argc, char *const *argv, const char *environment);
