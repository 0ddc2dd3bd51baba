// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "common/codec/attachment.h"

static const char KEY_TEXT[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
                               "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff\n";

static Arena *arena;
static MasterKey *master;
static DataKey *tenant_key;
static uint8_t key[ATTACHMENT_KEY_LEN];
static uint8_t sum[SHA256_LEN];
static Stentor__V1__Attachment file;
static Str sealed;

static int begin(void **state)
{
    (void)state;
    Error err = {0};
    arena = arena_new(0);
    master = master_key_parse(str_from(KEY_TEXT), &err);
    assert_non_null(master);
    tenant_key = data_key_for_tenant(master, STR("acme"));
    Str plain = STR("%PDF-1.7 an invoice");
    sealed = attachment_seal(plain, key, arena);
    sha256(plain, sum);
    stentor__v1__attachment__init(&file);
    file.name = arena_cstr(arena, STR("invoice.pdf"));
    file.content_type = arena_cstr(arena, STR("application/pdf"));
    file.size_bytes = (uint32_t)plain.len;
    file.sha256 = (ProtobufCBinaryData){sizeof sum, sum};
    file.key = (ProtobufCBinaryData){sizeof key, key};
    return 0;
}

static int end(void **state)
{
    (void)state;
    data_key_free(tenant_key);
    master_key_free(master);
    arena_free(arena);
    return 0;
}

static bool open_it(Str bytes, const char *part)
{
    Buf out;
    Error err = {0};
    buf_init(&out, 1000);
    bool ok = attachment_open(&file, bytes, &out, &err);
    if (ok) {
        assert_string_equal(buf_c(&out), "%PDF-1.7 an invoice");
    } else {
        assert_int_equal(err.kind, ERROR_PERMANENT);
        assert_non_null(strstr(err.text, part));
    }
    buf_done(&out);
    return ok;
}

static void what_is_sealed_opens_and_is_not_readable(void **state)
{
    (void)state;
    assert_true(open_it(sealed, ""));
    for (size_t i = 0; i + 8 <= sealed.len; i++) {
        assert_memory_not_equal(sealed.ptr + i, "an invoi", 8);
    }
}

static void every_altered_byte_is_seen(void **state)
{
    (void)state;
    char *bytes = arena_copy(arena, sealed.ptr, sealed.len);
    for (size_t i = 0; i < sealed.len; i++) {
        bytes[i] ^= 1;
        assert_false(open_it(str_of(bytes, sealed.len), "was altered"));
        bytes[i] ^= 1;
    }
    assert_false(open_it(str_of(bytes, sealed.len - 1), "bytes in object storage"));
    assert_false(open_it(STR_EMPTY, "bytes in object storage"));
    sum[0] ^= 1;
    assert_false(open_it(sealed, "another checksum"));
    sum[0] ^= 1;
    key[0] ^= 1;
    assert_false(open_it(sealed, "was altered"));
}

static void an_id_comes_back_for_its_tenant_alone(void **state)
{
    (void)state;
    const char *id = attachment_id_make(tenant_key, STR("acme"), &file, arena);
    assert_non_null(id);
    assert_true(str_starts(str_from(id), STR("att_")) && strlen(id) < ATTACHMENT_ID_MAX);
    Stentor__V1__Attachment *got = attachment_id_read(tenant_key, STR("acme"), str_from(id), arena);
    assert_non_null(got);
    assert_string_equal(got->name, "invoice.pdf");
    assert_memory_equal(got->key.data, key, sizeof key);
    assert_null(attachment_id_read(tenant_key, STR("zorg"), str_from(id), arena));
    DataKey *other = data_key_for_tenant(master, STR("zorg"));
    assert_null(attachment_id_read(other, STR("zorg"), str_from(id), arena));
    data_key_free(other);
    char *altered = arena_cstr(arena, str_from(id));
    altered[strlen(id) / 2] = altered[strlen(id) / 2] == 'A' ? 'B' : 'A';
    assert_null(attachment_id_read(tenant_key, STR("acme"), str_from(altered), arena));
    assert_null(attachment_id_read(tenant_key, STR("acme"), STR("att_"), arena));
    assert_null(attachment_id_read(tenant_key, STR("acme"), STR("att_AAAA"), arena));
    assert_null(attachment_id_read(tenant_key, STR("acme"), STR("ntf_1"), arena));
}

static void an_object_is_found_by_its_day(void **state)
{
    (void)state;
    char object[ATTACHMENT_OBJECT_SIZE];
    int64_t day = 0;
    attachment_object(STR("acme"), STR("01m2v3"), 1795199136123456, object);
    assert_string_equal(object, "attachments/2026-11-20/acme/01m2v3");
    assert_true(attachment_object_day(str_from(object), &day));
    assert_true(day == 1795132800000000);
    assert_false(attachment_object_day(STR("attachments/2026-11-20"), &day));
    assert_false(attachment_object_day(STR("attachments/2026-1120/acme/x"), &day));
    assert_false(attachment_object_day(STR("archive/2026-11-20/acme/x"), &day));
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(what_is_sealed_opens_and_is_not_readable),
        FRESH(every_altered_byte_is_seen),
        FRESH(an_id_comes_back_for_its_tenant_alone),
        FRESH(an_object_is_found_by_its_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
