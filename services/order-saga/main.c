// SPDX-License-Identifier: Apache-2.0
#include "services/order-saga/saga.h"

int main(int argc, char **argv)
{
    return service_main(&saga_service, argc, argv);
}
