// SPDX-License-Identifier: Apache-2.0
#include "common/tls/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arena.h"

enum { PROTOCOL_MAX = 32 };

struct TlsContext {
    SSL_CTX *ssl;
};

struct Tls {
    SSL *ssl;
    BIO *in;  // what the peer sent; owned by ssl
    BIO *out; // what is to be written; owned by ssl
};

// OpenSSL's text for its last error; clears its queue.
static bool fail(Error *err, ErrorKind kind, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return error_set(err, kind, "%s: %s", what, reason != NULL ? reason : "the session ended");
}

// What is offered by ALPN: a length and the name.
static bool offer(SSL_CTX *ssl, const char *protocol)
{
    unsigned char list[PROTOCOL_MAX + 1];
    size_t len = strlen(protocol);
    assert(len > 0 && len <= PROTOCOL_MAX);
    list[0] = (unsigned char)len;
    memcpy(list + 1, protocol, len);
    return SSL_CTX_set_alpn_protos(ssl, list, (unsigned)len + 1) == 0; // 0 is its success
}

TlsContext *tls_context_new(const char *ca_file, bool verify, const char *protocol, Error *err)
{
    ERR_clear_error();
    SSL_CTX *ssl = SSL_CTX_new(TLS_client_method());
    if (ssl == NULL || SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1 ||
        (protocol != NULL && !offer(ssl, protocol))) {
        SSL_CTX_free(ssl);
        fail(err, ERROR_CONFIG, "tls");
        return NULL;
    }
    bool trusts = ca_file[0] == '\0' ? SSL_CTX_set_default_verify_paths(ssl) == 1
                                     : SSL_CTX_load_verify_locations(ssl, ca_file, NULL) == 1;
    if (!trusts) {
        SSL_CTX_free(ssl);
        error_set(err, ERROR_CONFIG, "no certificates can be read from '%s'", ca_file);
        ERR_clear_error();
        return NULL;
    }
    SSL_CTX_set_verify(ssl, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    TlsContext *context = xcalloc(1, sizeof *context);
    context->ssl = ssl;
    return context;
}

void tls_context_free(TlsContext *context)
{
    if (context != NULL) {
        SSL_CTX_free(context->ssl);
        free(context);
    }
}

static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    }
    // SSL_set_tlsext_host_name() is a macro that casts const away.
    void *name = (void *)(uintptr_t)host;
    return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) == 1 &&
           SSL_set1_host(ssl, host) == 1;
}

Tls *tls_new(TlsContext *context, const char *host, Error *err)
{
    ERR_clear_error();
    SSL *ssl = SSL_new(context->ssl);
    BIO *in = BIO_new(BIO_s_mem());
    BIO *out = BIO_new(BIO_s_mem());
    if (ssl == NULL || in == NULL || out == NULL || !expect_host(ssl, host)) {
        SSL_free(ssl);
        BIO_free(in);
        BIO_free(out);
        fail(err, ERROR_TRANSIENT, "tls");
        return NULL;
    }
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    Tls *tls = xcalloc(1, sizeof *tls);
    *tls = (Tls){.ssl = ssl, .in = in, .out = out};
    return tls;
}

void tls_free(Tls *tls)
{
    if (tls != NULL) {
        SSL_free(tls->ssl);
        free(tls);
    }
}

static bool take_in(Tls *tls, Str received)
{
    return received.len == 0 ||
           (received.len <= INT_MAX &&
            BIO_write(tls->in, received.ptr, (int)received.len) == (int)received.len);
}

// Bytes that OpenSSL wants written.
static bool drain_out(Tls *tls, Buf *wire)
{
    size_t pending = BIO_ctrl_pending(tls->out);
    if (pending == 0) {
        return true;
    }
    if (pending > INT_MAX || !buf_reserve(wire, pending)) {
        return false;
    }
    int got = BIO_read(tls->out, wire->ptr + wire->len, (int)pending);
    wire->len += got > 0 ? (size_t)got : 0;
    return got == (int)pending;
}

bool tls_handshake(Tls *tls, Str received, Buf *wire, bool *ret_done, Error *err)
{
    ERR_clear_error();
    bool fine = take_in(tls, received);
    int result = fine ? SSL_do_handshake(tls->ssl) : -1;
    bool waits = result != 1 && SSL_get_error(tls->ssl, result) == SSL_ERROR_WANT_READ;
    if (!drain_out(tls, wire) || (result != 1 && !waits)) {
        if (tls_is_distrusted(tls)) {
            long verified = SSL_get_verify_result(tls->ssl);
            ERR_clear_error();
            return error_set(
                err, ERROR_TRANSIENT, "tls: the server's certificate is not accepted: %s",
                X509_verify_cert_error_string(verified));
        }
        return fail(err, ERROR_TRANSIENT, "tls handshake");
    }
    *ret_done = result == 1;
    return true;
}

bool tls_read(Tls *tls, Str received, Buf *plain, Buf *wire, bool *ret_closed, Error *err)
{
    ERR_clear_error();
    *ret_closed = false;
    if (!take_in(tls, received)) {
        return fail(err, ERROR_TRANSIENT, "tls");
    }
    for (;;) {
        if (!buf_reserve(plain, 4096)) {
            return error_set(err, ERROR_TRANSIENT, "tls: the server sent more than fits");
        }
        int got = SSL_read(tls->ssl, plain->ptr + plain->len, 4096);
        if (got > 0) {
            plain->len += (size_t)got;
            continue;
        }
        int why = SSL_get_error(tls->ssl, got);
        *ret_closed = why == SSL_ERROR_ZERO_RETURN;
        bool fine = why == SSL_ERROR_WANT_READ || *ret_closed;
        return (drain_out(tls, wire) && fine) || fail(err, ERROR_TRANSIENT, "tls");
    }
}

bool tls_write(Tls *tls, Str plain, Buf *wire, Error *err)
{
    ERR_clear_error();
    while (plain.len > 0) {
        int chunk = plain.len > INT_MAX ? INT_MAX : (int)plain.len;
        int put = SSL_write(tls->ssl, plain.ptr, chunk); // into memory: it never blocks
        if (put <= 0) {
            return fail(err, ERROR_TRANSIENT, "tls");
        }
        plain = str_slice(plain, (size_t)put, plain.len);
    }
    return drain_out(tls, wire) || fail(err, ERROR_TRANSIENT, "tls");
}

bool tls_is_distrusted(const Tls *tls)
{
    return SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE &&
           SSL_get_verify_result(tls->ssl) != X509_V_OK;
}

bool tls_speaks(const Tls *tls, Str protocol)
{
    const unsigned char *chosen = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(tls->ssl, &chosen, &len);
    return chosen != NULL && str_eq(str_of(chosen, len), protocol);
}
