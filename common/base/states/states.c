// SPDX-License-Identifier: Apache-2.0
#include "common/base/states/states.h"

#include <assert.h>

#include "common/base/log.h"

#ifdef STENTOR_STRICT_STATES
static bool forgiving;

void states_forgive(bool forgive)
{
    forgiving = forgive;
}

static bool is_forgiven(void)
{
    return forgiving;
}
#else
static bool is_forgiven(void)
{
    return true;
}
#endif

static LogField name_of(const States *states, const char *key, unsigned state)
{
    return log_text(key, state < states->count ? states->names[state] : "no state");
}

bool states_step(const States *states, unsigned from, unsigned to, Str who)
{
    if (!states_allow(states, from, to)) {
        LOG(LOG_ERROR,
            "a state machine refused a transition: this is a bug in stentor, please report it",
            log_text("machine", states->machine), log_str("of", who), name_of(states, "from", from),
            name_of(states, "to", to));
        assert(is_forgiven());
        return false;
    }
    if (log_wants(LOG_DEBUG)) {
        LOG(LOG_DEBUG, "state", log_text("machine", states->machine), log_str("of", who),
            name_of(states, "from", from), name_of(states, "to", to));
    }
    return true;
}
