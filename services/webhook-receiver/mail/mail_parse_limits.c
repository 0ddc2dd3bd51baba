// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE // RLIMIT_NPROC
#include "services/webhook-receiver/mail/mail_parse_limits.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/poison.h"

static bool limit(int resource, rlim_t soft, rlim_t hard)
{
    return setrlimit((__rlimit_resource_t)resource, &(struct rlimit){soft, hard}) == 0;
}

static bool limit_memory(void)
{
#ifdef STENTOR_ASAN // whose shadow alone is terabytes of address space
    return true;
#else
    return limit(RLIMIT_AS, MAIL_PARSE_MEMORY, MAIL_PARSE_MEMORY);
#endif
}

bool mail_parse_limit(void)
{
    const rlim_t descriptors = STDERR_FILENO + 1;
    return limit(RLIMIT_NOFILE, descriptors, descriptors) && limit(RLIMIT_NPROC, 0, 0) &&
           limit(RLIMIT_FSIZE, 0, 0) && limit(RLIMIT_CORE, 0, 0) &&
           // At the soft limit SIGXCPU, which says why it ended.
           limit(RLIMIT_CPU, MAIL_PARSE_CPU_S, MAIL_PARSE_CPU_S + 1) && limit_memory() &&
           prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) == 0 &&
           prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) == 0;
}
