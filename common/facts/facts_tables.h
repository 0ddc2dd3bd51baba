// SPDX-License-Identifier: Apache-2.0
// The columns of the facts: what stands in the files, and the SQL that gives it.
#pragma once

#include "common/parquet/parquet.h"

enum { FACTS_COLUMNS_MAX = 32 };

typedef struct FactsTable {
    const char *name; // also the function's in schema archive
    const char *key;  // the order within a tenant
    const ParquetColumn *columns;
    size_t count;
} FactsTable;

extern const FactsTable facts_tables[];
extern const size_t facts_table_count;
