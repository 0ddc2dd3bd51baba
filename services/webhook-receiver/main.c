// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "services/webhook-receiver/mail/mail_parse.h"
#include "services/webhook-receiver/receiver.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], MAIL_PARSE_ARGUMENT) == 0) {
        return mail_parse_main();
    }
    return service_main(&receiver_service, argc, argv);
}
