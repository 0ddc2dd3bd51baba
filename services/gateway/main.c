// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "services/gateway/gateway.h"
#include "services/gateway/jobs/audit_process.h"
#include "services/gateway/jobs/shadow_process.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], AUDIT_ARGUMENT) == 0) {
        return audit_process_main();
    }
    if (argc == 2 && strcmp(argv[1], SHADOW_ARGUMENT) == 0) {
        return shadow_process_main();
    }
    return service_main(&gateway_service, argc, argv);
}
