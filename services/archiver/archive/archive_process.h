// SPDX-License-Identifier: Apache-2.0
// The child process that archives: it blocks, so the service's loop does not. It dies with the
// service, gives way to everything else (nice), and holds the advisory lock `archive`. Everything
// that it does may be cut short.
#pragma once

#define ARCHIVE_ARGUMENT "--archive-child"

// What main() calls for `stentor-archiver --archive-child`: settings come from the environment, as
// archive_child.c makes it. Returns the exit status: 1 failed, to be started again; 2 a setting.
int archive_process_main(void);
