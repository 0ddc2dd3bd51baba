// SPDX-License-Identifier: Apache-2.0
#include "services/webhook-receiver/receiver.h"

int main(int argc, char **argv)
{
    return service_main(&receiver_service, argc, argv);
}
