// SPDX-License-Identifier: Apache-2.0
// A scripted SMTP server on the test's own loop, with real sockets: it answers as its rules say and
// keeps what it got. Not a general server: one recipient, no limits. Rules are looked up by the
// beginning of the client's line.
#pragma once

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "common/base/arena.h"
#include "common/base/buf.h"

#define SCRIPT_CLOSE "!close" // hangs up instead of answering
#define SCRIPT_SILENCE ""     // never answers

enum {
    SCRIPT_RULES_MAX = 16,
    SCRIPT_MAILS_MAX = 64,
    SCRIPT_LOG_MAX = 64 * 1024,
    SCRIPT_MAIL_MAX = 64 * 1024
};

// `line`: "EHLO", "MAIL FROM:<a@" ... or "" for a new connection and "." for the end of a mail.
typedef struct ScriptRule {
    const char *line;
    const char *reply; // without the last CRLF
    int times;         // 0: always
} ScriptRule;

typedef struct Script {
    uv_loop_t *loop;
    uv_tcp_t listener, listener6;
    int port;
    ScriptRule rules[SCRIPT_RULES_MAX];
    size_t rule_count;
    Buf log; // every line, "\n" after each; "|" where a read ended; "+" a new connection
    char *mails[SCRIPT_MAILS_MAX];
    size_t mail_count;
    int connections;
    int open;
    SSL_CTX *tls;
    char ca_file[64];
} Script;

typedef struct ScriptPeer {
    Script *script;
    uv_tcp_t tcp;
    Buf in;
    Buf data;
    bool in_data;
    SSL *ssl;
    BIO *from_client, *to_client;
    char chunk[64 * 1024];
} ScriptPeer;

static inline void script_rule(Script *script, const char *line, const char *reply, int times)
{
    assert(script->rule_count < SCRIPT_RULES_MAX);
    script->rules[script->rule_count++] = (ScriptRule){line, reply, times};
}

static inline const char *script_default(Str line)
{
    // clang-format off
    static const ScriptRule rules[] = {
        {"EHLO", "250-script\r\n250-PIPELINING\r\n250-SIZE 100000\r\n250 ENHANCEDSTATUSCODES", 0},
        {"HELO", "250 script", 0}, {"MAIL", "250 2.1.0 Ok", 0}, {"RCPT", "250 2.1.5 Ok", 0}, {"DATA", "354 go on", 0},
        {"RSET", "250 2.0.0 Ok", 0}, {"QUIT", "221 2.0.0 Bye", 0}, {".", "250 2.0.0 Ok: queued", 0},
        {"STARTTLS", "220 go on", 0},
    };
    // clang-format on
    if (line.len == 0) {
        return "220 script ESMTP";
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (str_starts(line, str_from(rules[i].line))) {
            return rules[i].reply;
        }
    }
    return "502 5.5.1 what?";
}

static inline const char *script_answer(Script *script, Str line)
{
    for (size_t i = 0; i < script->rule_count; i++) {
        ScriptRule *rule = &script->rules[i];
        Str begin = str_from(rule->line);
        bool matches = begin.len == 0 ? line.len == 0 : str_starts(line, begin);
        if (matches && rule->times >= 0) {
            if (rule->times > 0 && --rule->times == 0) {
                rule->times = -1;
            }
            return rule->reply;
        }
    }
    return script_default(line);
}

static inline void script_on_peer_closed(uv_handle_t *handle)
{
    ScriptPeer *peer = handle->data;
    peer->script->open--;
    buf_done(&peer->in);
    buf_done(&peer->data);
    SSL_free(peer->ssl);
    free(peer);
}

static inline void script_hang_up(ScriptPeer *peer)
{
    if (!uv_is_closing((uv_handle_t *)&peer->tcp)) {
        uv_close((uv_handle_t *)&peer->tcp, script_on_peer_closed);
    }
}

static inline void script_write(ScriptPeer *peer, const void *bytes, size_t len)
{
    uv_buf_t out = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)len);
    int sent = uv_try_write((uv_stream_t *)&peer->tcp, &out, 1);
    assert(sent < 0 || (size_t)sent == len); // loopback takes these few bytes at once
}

static inline void script_push_tls(ScriptPeer *peer)
{
    char bytes[16 * 1024];
    int got;
    while ((got = BIO_read(peer->to_client, bytes, sizeof bytes)) > 0) {
        script_write(peer, bytes, (size_t)got);
    }
}

static inline void script_say(ScriptPeer *peer, const char *reply)
{
    if (strcmp(reply, SCRIPT_CLOSE) == 0) {
        script_hang_up(peer);
        return;
    }
    if (reply[0] == '\0' || uv_is_closing((uv_handle_t *)&peer->tcp)) {
        return;
    }
    char text[4096];
    int len = snprintf(text, sizeof text, "%s\r\n", reply);
    if (peer->ssl != NULL && SSL_is_init_finished(peer->ssl)) {
        SSL_write(peer->ssl, text, len);
        script_push_tls(peer);
    } else {
        script_write(peer, text, (size_t)len);
    }
}

static inline void script_start_tls(ScriptPeer *peer)
{
    peer->ssl = SSL_new(peer->script->tls);
    peer->from_client = BIO_new(BIO_s_mem());
    peer->to_client = BIO_new(BIO_s_mem());
    SSL_set_bio(peer->ssl, peer->from_client, peer->to_client);
    SSL_set_accept_state(peer->ssl);
}

static inline void script_command(ScriptPeer *peer, Str line)
{
    Script *script = peer->script;
    buf_str(&script->log, line);
    buf_char(&script->log, '\n');
    const char *reply = script_answer(script, line);
    script_say(peer, reply);
    if (str_eq(line, STR("DATA")) && reply[0] == '3') {
        peer->in_data = true;
        buf_clear(&peer->data);
    } else if (str_eq(line, STR("STARTTLS")) && reply[0] == '2') {
        script_start_tls(peer);
    } else if (str_starts(line, STR("QUIT"))) {
        script_hang_up(peer);
    }
}

static inline void script_data_line(ScriptPeer *peer, Str line)
{
    Script *script = peer->script;
    if (!str_eq(line, STR("."))) {
        buf_str(&peer->data, line); // with the dots as they came
        buf_str(&peer->data, STR("\r\n"));
        return;
    }
    peer->in_data = false;
    assert(script->mail_count < SCRIPT_MAILS_MAX);
    script->mails[script->mail_count++] = xstrdup(buf_c(&peer->data));
    buf_str(&script->log, STR(".\n"));
    script_say(peer, script_answer(script, STR(".")));
}

static inline void script_lines(ScriptPeer *peer)
{
    const char *end;
    while (!uv_is_closing((uv_handle_t *)&peer->tcp) && peer->in.len > 0 &&
           (end = memchr(peer->in.ptr, '\n', peer->in.len)) != NULL) {
        size_t used = (size_t)(end - peer->in.ptr) + 1;
        assert(used >= 2 && end[-1] == '\r'); // CRLF only
        char *copy = xmalloc(used);
        memcpy(copy, peer->in.ptr, used);
        buf_drop_front(&peer->in, used);
        Str line = {copy, used - 2};
        if (peer->in_data) {
            script_data_line(peer, line);
        } else {
            script_command(peer, line);
        }
        free(copy);
    }
    buf_char(&peer->script->log, '|');
}

static inline void script_on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    (void)size;
    ScriptPeer *peer = handle->data;
    *buf = uv_buf_init(peer->chunk, sizeof peer->chunk);
}

static inline void script_tls_read(ScriptPeer *peer, const char *bytes, size_t len)
{
    BIO_write(peer->from_client, bytes, (int)len);
    bool fresh = !SSL_is_init_finished(peer->ssl);
    if (fresh) {
        int done = SSL_do_handshake(peer->ssl);
        script_push_tls(peer);
        if (done != 1) {
            return;
        }
        buf_cstr(&peer->script->log, "(tls)");
    }
    char plain[16 * 1024];
    int got;
    while ((got = SSL_read(peer->ssl, plain, sizeof plain)) > 0) {
        buf_append(&peer->in, plain, (size_t)got);
    }
    if (!fresh || peer->in.len > 0) {
        script_lines(peer);
    }
}

static inline void script_on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    ScriptPeer *peer = stream->data;
    if (count < 0) {
        script_hang_up(peer);
    } else if (peer->ssl != NULL) {
        script_tls_read(peer, buf->base, (size_t)count);
    } else {
        buf_append(&peer->in, buf->base, (size_t)count);
        script_lines(peer);
    }
}

static inline void script_on_connection(uv_stream_t *listener, int status)
{
    assert(status == 0);
    Script *script = listener->data;
    ScriptPeer *peer = xcalloc(1, sizeof *peer);
    peer->script = script;
    peer->tcp.data = peer;
    buf_init(&peer->in, SCRIPT_MAIL_MAX * 4);
    buf_init(&peer->data, SCRIPT_MAIL_MAX);
    uv_tcp_init(script->loop, &peer->tcp);
    uv_accept(listener, (uv_stream_t *)&peer->tcp);
    uv_read_start((uv_stream_t *)&peer->tcp, script_on_alloc, script_on_read);
    script->connections++;
    script->open++;
    buf_char(&script->log, '+');
    script_say(peer, script_answer(script, STR_EMPTY));
}

static inline bool script_listen(Script *script, uv_tcp_t *listener, const struct sockaddr *at)
{
    uv_tcp_init(script->loop, listener);
    listener->data = script;
    return uv_tcp_bind(listener, at, 0) == 0 &&
           uv_listen((uv_stream_t *)listener, 64, script_on_connection) == 0;
}

// Where there is IPv6, on ::1 too: `localhost` has both addresses then, and the client tries each.
static inline void script_start(Script *script, uv_loop_t *loop)
{
    *script = (Script){.loop = loop};
    buf_init(&script->log, SCRIPT_LOG_MAX);
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", 0, &address);
    bool listens = script_listen(script, &script->listener, (const struct sockaddr *)&address);
    assert(listens);
    int len = sizeof address;
    uv_tcp_getsockname(&script->listener, (struct sockaddr *)&address, &len);
    script->port = ntohs(address.sin_port);
    struct sockaddr_in6 address6;
    uv_ip6_addr("::1", script->port, &address6);
    (void)script_listen(script, &script->listener6, (const struct sockaddr *)&address6);
}

static inline void script_stop(Script *script)
{
    uv_close((uv_handle_t *)&script->listener, NULL);
    uv_close((uv_handle_t *)&script->listener6, NULL);
}

static inline void script_done(Script *script)
{
    for (size_t i = 0; i < script->mail_count; i++) {
        free(script->mails[i]);
    }
    buf_done(&script->log);
    SSL_CTX_free(script->tls);
    if (script->ca_file[0] != '\0') {
        remove(script->ca_file);
    }
}

// A certificate for `host` that signs itself, written to script->ca_file as well.
// valid_s: from now on; negative: it has expired.
static inline void script_certificate_until(Script *script, const char *host, int valid_s)
{
    SSL_CTX_free(script->tls);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), valid_s);
    X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)host, -1, -1, 0);
    X509_set_issuer_name(cert, name);
    char alt[128];
    snprintf(alt, sizeof alt, "DNS:%s", host);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alt);
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    assert(X509_sign(cert, key, EVP_sha256()) > 0);
    script->tls = SSL_CTX_new(TLS_server_method());
    assert(
        SSL_CTX_use_certificate(script->tls, cert) == 1 &&
        SSL_CTX_use_PrivateKey(script->tls, key) == 1);
    snprintf(script->ca_file, sizeof script->ca_file, "smtp_script_ca_%d.pem", script->port);
    FILE *file = fopen(script->ca_file, "w");
    assert(file != NULL && PEM_write_X509(file, cert) == 1);
    fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static inline void script_certificate(Script *script, const char *host)
{
    script_certificate_until(script, host, 3600);
}
