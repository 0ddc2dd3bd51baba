// SPDX-License-Identifier: Apache-2.0
// The inbox of this installation as a vendor (vendor.h): a notification is sent when FEED has
// stored its item. `message` of a mail is the packed item (opening/open.c).
//
// The item's event id is the notification's, so a second one adds no second item: JetStream drops
// it within its window, the projection after that. So what may have been stored is sent again.
#pragma once

#include "common/bus/jetstream/bus.h"
#include "services/dispatcher/vendor/vendor.h"

Vendor inapp_vendor(Bus *bus); // borrowed; nothing is to be freed
