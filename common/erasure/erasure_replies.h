// SPDX-License-Identifier: Apache-2.0
// What a person wrote back (REPLIES) is sealed under the tenant's key, because the service that
// receives it has no Postgres and so no data keys: an erasure deletes it, and the server writes
// over its bytes. It blocks.
#pragma once

#include "common/codec/master_key.h"
#include "common/erasure/erasure_request.h"

// Every reply of the request's addresses, whichever hash key the event's own hash was made with. A
// repeat finds none of them. TRANSIENT: JetStream did not delete one, which is named.
bool erasure_delete_replies(
    PGconn *pg, Session *session, MasterKey *master, const ErasureRequest *request, Arena *arena,
    Error *err);
