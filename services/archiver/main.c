// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "services/archiver/archive/archive_process.h"
#include "services/archiver/archiver.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], ARCHIVE_ARGUMENT) == 0) {
        return archive_process_main();
    }
    return service_main(&archiver_service, argc, argv);
}
