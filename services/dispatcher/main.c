// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "services/dispatcher/dispatcher_service.h"
#include "services/dispatcher/webhooks/webhook_service.h"

int main(int argc, char **argv)
{
    bool webhooks = webhook_is_wanted(argc, argv, getenv("STENTOR_CHANNELS"));
    return service_main(webhooks ? &webhook_service : &dispatcher_service, argc, argv);
}
