// SPDX-License-Identifier: Apache-2.0
#include "common/model/company.h"

void company_note(Company *company, Str tenant, int64_t now_us)
{
    if (str_eq(tenant, str_from(company->last))) {
        return;
    }
    if (company->last[0] != '\0') {
        company->until_us = now_us + COMPANY_MS * INT64_C(1000);
    }
    (void)str_to_c(tenant, company->last, sizeof company->last);
}

bool company_is(const Company *company, int64_t now_us)
{
    return now_us < company->until_us;
}
