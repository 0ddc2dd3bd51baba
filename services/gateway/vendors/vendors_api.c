// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/vendors/vendors_api.h"

#include <stdlib.h>

#include "common/base/log.h"
#include "common/config/channel_health.h"
#include "services/gateway/vendors/channel_states.h"

void vendors_api_init(VendorsApi *vendors, Bus *bus)
{
    *vendors = (VendorsApi){.bus = bus, .routes = routes_new(), .health = map_new(free)};
}

void vendors_api_done(VendorsApi *vendors)
{
    routes_free(vendors->routes);
    map_free(vendors->health);
}

void vendors_api_add(Api *api, VendorsApi *vendors)
{
    routes_api_add(api, vendors);
    credentials_api_add(api, vendors);
    channels_api_add(api, vendors);
}

void vendors_api_changed(
    VendorsApi *vendors, Str kind, Str tenant, Str key, const BusMessage *message)
{
    Error err = {0};
    bool ok = true;
    if (str_eq(kind, STR("route"))) {
        ok = routes_changed(vendors->routes, tenant, key, message->payload, &err);
    } else if (str_eq(kind, STR("credential"))) {
        ok = routes_credential_changed(vendors->routes, tenant, key, message->payload, &err);
    } else if (str_eq(kind, STR(CHANNEL_HEALTH_KIND))) {
        channel_states_put(vendors->health, tenant, key, message->payload);
    }
    if (!ok) { // of another version: the one before stays
        LOG(LOG_WARN, "an entry of CONFIG is not used", log_str("kind", kind),
            log_str("tenant", tenant), log_str("key", key), log_error(&err));
    }
}
