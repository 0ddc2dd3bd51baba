// SPDX-License-Identifier: Apache-2.0
// TLS for a stream that the caller reads and writes: bytes in, bytes out, through OpenSSL's
// memory BIOs. No sockets here. Law: after an error the session is unusable.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

typedef struct SmtpTlsContext
    SmtpTlsContext;             // one per process: trust and protocol versions (1.2 and later)
typedef struct SmtpTls SmtpTls; // one per connection

// ca_file "": the system's. verify false: encrypted, with an unknown peer.
// ERROR_CONFIG when the file cannot be read or holds no certificate.
SmtpTlsContext *smtp_tls_context_new(const char *ca_file, bool verify, Error *err);
void smtp_tls_context_free(SmtpTlsContext *context);

// host: the name (or IP address) that the certificate must be for.
SmtpTls *smtp_tls_new(SmtpTlsContext *context, const char *host, Error *err);
void smtp_tls_free(SmtpTls *tls);

// Continues the handshake; appends bytes to be written to `wire`. *ret_done when it is
// complete.
bool smtp_tls_handshake(SmtpTls *tls, Str received, Buf *wire, bool *ret_done, Error *err);
// Appends what `received` decrypts to. *ret_closed: the peer ended the session.
bool smtp_tls_read(SmtpTls *tls, Str received, Buf *plain, Buf *wire, bool *ret_closed, Error *err);
bool smtp_tls_write(SmtpTls *tls, Str plain, Buf *wire, Error *err);
