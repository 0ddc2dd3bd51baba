// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/tls/tls_expiry.h"

enum { DAY_S = 86400 };

typedef struct Folder {
    char path[64];
    EVP_PKEY *key;
    time_t now;
} Folder;

static int set_up(void **state)
{
    Folder *folder = calloc(1, sizeof *folder);
    int fd = -1;
    snprintf(folder->path, sizeof folder->path, "/tmp/tls_expiry_test.XXXXXX");
    fd = mkstemp(folder->path);
    assert_true(fd >= 0);
    close(fd);
    folder->key = EVP_EC_gen("P-256");
    folder->now = time(NULL);
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    Folder *folder = *state;
    unlink(folder->path);
    EVP_PKEY_free(folder->key);
    free(folder);
    return 0;
}

// Appends a certificate that ends in so many days.
static void add(Folder *folder, int days)
{
    FILE *file = fopen(folder->path, "a");
    X509 *certificate = X509_new();
    assert_non_null(file);
    time_t now = folder->now;
    assert_non_null(X509_time_adj_ex(X509_getm_notBefore(certificate), -900, 0, &now));
    assert_non_null(X509_time_adj_ex(X509_getm_notAfter(certificate), days, 0, &now));
    assert_int_equal(X509_set_pubkey(certificate, folder->key), 1);
    assert_true(X509_sign(certificate, folder->key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    X509_free(certificate);
    fclose(file);
}

static int64_t at(const Folder *folder, int days)
{
    return ((int64_t)folder->now + (int64_t)days * DAY_S) * 1000000;
}

static void the_first_that_ends_counts(void **state)
{
    Folder *folder = *state;
    int64_t end_us = 0;
    Error err = {0};
    add(folder, 300);
    assert_true(tls_file_expiry(folder->path, &end_us, &err));
    assert_int_equal(end_us, at(folder, 300));
    add(folder, -4);
    add(folder, 20000); // beyond 2049 the time is written otherwise
    assert_true(tls_file_expiry(folder->path, &end_us, &err));
    assert_int_equal(end_us, at(folder, -4));
}

static void a_list_of_many_ends_never(void **state)
{
    Folder *folder = *state;
    int64_t end_us = 0;
    Error err = {0};
    for (int i = 0; i < TLS_EXPIRY_CERTIFICATES_MAX; i++) {
        add(folder, 5);
    }
    assert_true(tls_file_expiry(folder->path, &end_us, &err));
    assert_int_equal(end_us, at(folder, 5));
    add(folder, 5);
    assert_true(tls_file_expiry(folder->path, &end_us, &err));
    assert_true(end_us == INT64_MAX);
}

static void a_file_without_one_is_named(void **state)
{
    const Folder *folder = *state;
    int64_t end_us = 7;
    Error err = {0};
    assert_false(tls_file_expiry(folder->path, &end_us, &err));
    assert_int_equal(err.kind, ERROR_CONFIG);
    assert_non_null(strstr(err.text, folder->path));
    assert_false(tls_file_expiry("/nowhere/ca.pem", &end_us, &err));
    assert_int_equal(end_us, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_first_that_ends_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_list_of_many_ends_never, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_without_one_is_named, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
