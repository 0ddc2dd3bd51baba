// SPDX-License-Identifier: Apache-2.0
#include "services/digest-flusher/flusher.h"

int main(int argc, char **argv)
{
    return service_main(&flusher_service, argc, argv);
}
