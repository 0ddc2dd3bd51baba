// SPDX-License-Identifier: Apache-2.0
#include "common/tls/tls_expiry.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <time.h>

// INT64_MIN: OpenSSL cannot read the time, so it has to be looked at.
static int64_t end_of(const X509 *certificate)
{
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0, seconds = 0;
    bool known = epoch != NULL &&
                 ASN1_TIME_diff(&days, &seconds, epoch, X509_get0_notAfter(certificate)) == 1;
    ASN1_TIME_free(epoch);
    return known ? ((int64_t)days * 86400 + seconds) * 1000000 : INT64_MIN;
}

bool tls_file_expiry(const char *path, int64_t *ret_us, Error *err)
{
    BIO *file = BIO_new_file(path, "r");
    int64_t first_us = INT64_MAX;
    X509 *certificate = NULL;
    int count = 0;
    while (file != NULL && count <= TLS_EXPIRY_CERTIFICATES_MAX &&
           (certificate = PEM_read_bio_X509_AUX(file, NULL, NULL, NULL)) != NULL) {
        int64_t end_us = end_of(certificate);
        first_us = end_us < first_us ? end_us : first_us;
        X509_free(certificate);
        count++;
    }
    BIO_free(file);
    ERR_clear_error(); // the end of the file is one
    if (count == 0) {
        return error_set(err, ERROR_CONFIG, "no certificates can be read from '%s'", path);
    }
    *ret_us = count > TLS_EXPIRY_CERTIFICATES_MAX ? INT64_MAX : first_us;
    return true;
}
