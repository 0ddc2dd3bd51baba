// SPDX-License-Identifier: Apache-2.0
// The child process that audits (common/audit), as `stentor audit` does and without a repair: every
// record of the notifications of a span, read from the streams and from Postgres, as numbers. It
// blocks, gives way to everything else (nice), and dies with the service.
#pragma once

#define AUDIT_ARGUMENT "--audit-job"

// What main() calls for `stentor-gateway --audit-job`: the job on standard input, its answer on
// standard output, where NATS and Postgres are in the environment. Returns the exit status.
int audit_process_main(void);
