// SPDX-License-Identifier: Apache-2.0
#include "common/api/faults.h"

#include <string.h>

const char *faults_note(Faults *faults, const Error *err, int64_t now_us, bool *ret_new)
{
    for (size_t i = 0; i < FAULTS_KEPT; i++) {
        const Fault *fault = &faults->kept[i];
        if (fault->id[0] != '\0' && now_us - fault->at_us < FAULT_WINDOW_S * INT64_C(1000000) &&
            strcmp(fault->text, err->text) == 0) {
            *ret_new = false;
            return fault->id;
        }
    }
    Fault *fault = &faults->kept[faults->next++ % FAULTS_KEPT];
    memcpy(fault->text, err->text, sizeof fault->text);
    fault->at_us = now_us;
    id_new("flt_", now_us, fault->id);
    *ret_new = true;
    return fault->id;
}
