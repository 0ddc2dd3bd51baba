// SPDX-License-Identifier: Apache-2.0
// Heartbeat: each process says every two seconds how it is, on core NATS under
// live.process.<service>.<instance>, to whoever listens (the gateway's picture of the pipeline). At
// most once, and kept nowhere: a process that is not heard is down. JSON on one line:
//   service, instance, version, started_at_us, ready, why; rss_bytes, cpu_percent,
//   handled_per_s (inputs acked), published_per_s; p99_ms: of each histogram of seconds in the last
//   two; values: of each gauge named *_lag or *_active.
#pragma once

enum { HEARTBEAT_MS = 2000, HEARTBEAT_MAX = 8 * 1024 };

struct Service;

// Twice a second (service.c). A program without a row of rights (nats_rights.h) says nothing.
void heartbeat_tick(struct Service *service);
