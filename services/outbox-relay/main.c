// SPDX-License-Identifier: Apache-2.0
#include "services/outbox-relay/relay.h"

int main(int argc, char **argv)
{
    return service_main(&relay_service, argc, argv);
}
