// SPDX-License-Identifier: Apache-2.0
// Checks that an address looks like one of its channel. ingest decides (it knows IDNA and numbers);
// this finds addresses that ingest would certainly reject, so that the row gets the reason. Pure.
#pragma once

#include "common/model/enums.h"

enum { ROW_ADDRESS_MAX = 512, ROW_ADDRESS_REASON_SIZE = 80 };

// false: `reason` fits after "fields.to ".
bool row_address_fits(Channel channel, Str address, char reason[ROW_ADDRESS_REASON_SIZE]);
