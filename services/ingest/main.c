// SPDX-License-Identifier: Apache-2.0
#include "services/ingest/ingest.h"

int main(int argc, char **argv)
{
    return service_main(&ingest_service, argc, argv);
}
