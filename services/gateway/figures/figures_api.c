// SPDX-License-Identifier: Apache-2.0
#include "services/gateway/figures/figures_api.h"

#include "services/gateway/figures/figures_internal.h"

void figures_api_add(Api *api, FiguresApi *figures)
{
    figures_usage_add(api, figures);
    figures_sending_add(api, figures);
}
