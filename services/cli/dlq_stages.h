// SPDX-License-Identifier: Apache-2.0
// The stages that write dead letters, for an operator to choose from.
#pragma once

#define DLQ_STAGES                                                                                 \
    "ingest, render, dispatcher, digest-flusher, webhook-receiver, history, people, digests, "     \
    "order-saga"
