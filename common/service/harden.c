// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE // MCL_ONFAULT
#include "common/service/harden.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

void process_forbid_dumps(void)
{
    // Neither can fail: a limit may always be lowered. A core_pattern that is a pipe knows no
    // limit, but dumpable.
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
}

// Only what is touched: a thread's stack of 8 MiB stays small.
bool process_lock_memory(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY &&
           mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}
