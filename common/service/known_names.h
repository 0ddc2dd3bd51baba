// SPDX-License-Identifier: Apache-2.0
// Every name of a setting that a program of the product reads, its scripts and its tests included.
// One environment and one file serve all programs, so each must tell a name of another program from
// a typing mistake. tests/lint and test_finding_16_unknown_variable.py hold the list to the
// programs.
#pragma once

#include "common/base/str.h"

enum { KNOWN_NAME_MAX = 96 };

// Is there a setting of this name, of whichever program? A secret's NAME_FILE counts.
bool known_name(Str name);
// The known name that is most like this one; NULL: none is like it.
const char *known_name_nearest(Str name);
// Kubernetes sets variables for each service of the namespace: NAME_SERVICE_HOST,
// NAME_SERVICE_PORT, NAME_SERVICE_PORT_HTTP, NAME_PORT, NAME_PORT_8080_TCP and that with _ADDR,
// _PORT or _PROTO. The length of NAME when `name` has one of these forms; 0: it has none.
size_t kubernetes_service(Str name);
