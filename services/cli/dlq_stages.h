// SPDX-License-Identifier: Apache-2.0
// The stages that write dead letters, for an operator to choose from: the programs' names.
#pragma once

#define DLQ_STAGES                                                                                 \
    "ingest, renderer, dispatcher, digest-flusher, webhook-receiver, webhook, archiver, gateway, " \
    "order-saga"
