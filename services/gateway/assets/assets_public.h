// SPDX-License-Identifier: Apache-2.0
// GET /v1/assets/{tenant}/{sha256}.{extension}: what mails show, to anyone, without a key. Law: the
// bytes are those that the address names, or there is an error; a name of 256 bits is not guessed,
// so that what stands in no mail is not seen.
#pragma once

#include "common/api/faults.h"
#include "common/http/server.h"
#include "common/render/assets.h"
#include "common/service/metrics.h"
#include "services/gateway/assets/asset_objects.h"

typedef enum AssetAnswer {
    ANSWER_SHOWN,
    ANSWER_UNCHANGED, // the caller has the bytes (304)
    ANSWER_ABSENT,
    ANSWER_DAMAGED,
    ANSWER_BUSY,
    ANSWER_FAILED,
    ANSWER_COUNT
} AssetAnswer;

typedef struct AssetsPublic {
    AssetObjects *objects;
    const Assets *assets;
    Metric *answers[ANSWER_COUNT];
    Faults faults;
} AssetsPublic;

void assets_public_init(
    AssetsPublic *ret, AssetObjects *objects, const Assets *assets, Metrics *metrics);
// For the server's admit, of a path that asset_is_path. false: answered.
bool assets_public_admit(HttpRequest *request);
void assets_public_handle(AssetsPublic *assets, HttpRequest *request);
