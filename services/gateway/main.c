// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/gateway.h"

int main(int argc, char **argv)
{
    return service_main(&gateway_service, argc, argv);
}
