// SPDX-License-Identifier: Apache-2.0
// The child process that renders past requests with another version of their template
// (common/replay/shadow), as `stentor replay --shadow` does: nothing in it can send. It blocks,
// gives way to everything else (nice), and dies with the service. What it answers is without
// personal data: values show as the tags of their template.
#pragma once

#define SHADOW_ARGUMENT "--shadow-job"

enum { SHADOW_SECONDS = 480 }; // then it answers with what it has compared, before JOB_MAX_S

// What main() calls for `stentor-gateway --shadow-job`: the job on standard input, its progress and
// its answer on standard output. Returns the exit status.
int shadow_process_main(void);
