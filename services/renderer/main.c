// SPDX-License-Identifier: Apache-2.0
#include "services/renderer/renderer.h"

int main(int argc, char **argv)
{
    return service_main(&renderer_service, argc, argv);
}
