// SPDX-License-Identifier: Apache-2.0
// Objects of one tenant and table: rows to a spool file, the file to object storage, what an
// earlier writing left deleted.
#pragma once

#include "common/facts/facts.h"
#include "common/facts/facts_tables.h"

typedef struct FactsObject FactsObject;

// Borrows everything. `folder` is "facts/<table>/tenant=<tenant>/day=<day>/".
FactsObject *facts_object_new(
    StorageWait *storage, const FactsOptions *options, const FactsTable *table, const char *folder);
void facts_object_free(FactsObject *object); // NULL-safe
bool facts_object_row(
    FactsObject *object, const ParquetValue *values, FactsWritten *count, Error *err);
// Stores the last part, then deletes objects of the folder that were not written now.
bool facts_object_end(FactsObject *object, FactsWritten *count, Error *err);
