// SPDX-License-Identifier: Apache-2.0
// links: svc_outbox_relay
// Any bytes as a mapping file: refused with words, or a mapping within its bounds whose statements
// can be generated.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/outbox/sql/relay_sql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_source(const Mapping *m, const Source *s)
{
    assert(!s->given || s->constant || (s->column >= 0 && s->column < m->column_count));
    assert(s->path_count >= 0 && s->path_count <= MAPPING_PATH_MAX);
}

static void check_mapping(const Mapping *m)
{
    assert(m->name.len > 0 && m->name.len <= MAPPING_NAME_MAX);
    assert(m->column_count <= MAPPING_COLUMNS_MAX && m->order_count >= 1);
    assert((m->pending.count > 0) != (m->state_count > 0));
    for (int i = 0; i < FIELD_COUNT; i++) {
        check_source(m, &m->fields[i]);
    }
    check_source(m, &m->all);
    for (size_t i = 0; i < m->variable_count; i++) {
        check_source(m, &m->variables[i].source);
    }
    for (int i = 0; i < m->keep_count; i++) {
        assert(m->keep[i].age_s > 0 && m->keep[i].column.len > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Error err = {0};
    Mapping *m = mapping_read(str_of(data, size), &err);
    if (m == NULL) {
        assert(err.kind == ERROR_CONFIG && err.text[0] != '\0');
        return 0;
    }
    check_mapping(m);
    RelaySql *sql = relay_sql_new(m);
    assert(strlen(sql->check.sql) > 0);
    relay_sql_free(sql);
    mapping_free(m);
    return 0;
}
