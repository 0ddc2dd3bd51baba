// SPDX-License-Identifier: Apache-2.0
// Calls of vendors from the command line, one after the other: by the dispatcher's HTTP client,
// under STENTOR_VENDOR_ADDRESSES and STENTOR_VENDOR_CA_FILE as there.
#pragma once

#include "common/vendor/vendor_api.h"
#include "services/cli/cli.h"

typedef struct VendorCaller VendorCaller;

// ERROR_CONFIG: an option is wrong. cli must outlive it.
VendorCaller *vendor_caller_new(const Cli *cli, Error *err);
void vendor_caller_free(VendorCaller *caller); // NULL-safe
// Any answer is one, for VendorApi.read; its body is valid until the next call. It takes 10 s at
// most; without an answer the error says why.
bool vendor_call(VendorCaller *caller, const VendorRequest *request, VendorAnswer *ret, Error *err);
