// SPDX-License-Identifier: Apache-2.0
// What a trigger would make of a sample event, as JSON; nothing is sent or looked up, so of a
// resolver with several rules each one that the event has something for is shown: the first one's,
// and the others under "else". For the API and the command line. Pure.
#pragma once

#include "common/request/catalog.h"
#include "common/trigger/trigger_apply.h"

// A new reference. ERROR_PERMANENT when the event cannot be read or the trigger cannot use it.
// `catalog` names the template's version; NULL: not shown. `now_us` is also when the event counts
// as stored.
json_t *trigger_try(
    const Stentor__V1__Trigger *trigger, const NamedResolvers *resolvers, const DomainInput *input,
    const Catalog *catalog, int64_t now_us, Arena *arena, Error *err);
