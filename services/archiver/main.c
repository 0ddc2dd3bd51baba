// SPDX-License-Identifier: Apache-2.0
#include "services/archiver/archiver.h"

int main(int argc, char **argv)
{
    return service_main(&archiver_service, argc, argv);
}
