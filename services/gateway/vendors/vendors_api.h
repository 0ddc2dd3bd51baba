// SPDX-License-Identifier: Apache-2.0
// /v1/routes, /v1/credentials, /v1/channels: which vendors carry a tenant's notifications, with
// what, and which are suspended. Reading is a tenant's, writing the operator's: a credential is a
// reference into the dispatchers' host, and a route decides what is sent at whose cost. Those of
// the installation are tenant `platform`'s. No secret ever passes here.
#pragma once

#include "common/api/api.h"
#include "common/base/map.h"
#include "common/bus/jetstream/bus.h"
#include "common/routing/routes.h"

typedef struct VendorsApi {
    Bus *bus;
    Routes *routes;
    Map *health; // "<tenant>/<channel>_<vendor>" -> packed ChannelHealth with its length before it
} VendorsApi;

void vendors_api_init(VendorsApi *vendors, Bus *bus);
void vendors_api_done(VendorsApi *vendors);
// Borrows `vendors`, which must live as long as `api`.
void vendors_api_add(Api *api, VendorsApi *vendors);
// An entry of CONFIG, of any kind.
void vendors_api_changed(
    VendorsApi *vendors, Str kind, Str tenant, Str key, const BusMessage *message);

// The three files' own; routes_api.c, credentials_api.c, channels_api.c.
void routes_api_add(Api *api, VendorsApi *vendors);
void credentials_api_add(Api *api, VendorsApi *vendors);
void channels_api_add(Api *api, VendorsApi *vendors);
