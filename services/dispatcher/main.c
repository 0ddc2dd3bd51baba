// SPDX-License-Identifier: Apache-2.0
#include "services/dispatcher/dispatcher_service.h"

int main(int argc, char **argv)
{
    return service_main(&dispatcher_service, argc, argv);
}
