// SPDX-License-Identifier: Apache-2.0
// TLS for a stream that the caller reads and writes: bytes in, bytes out, through OpenSSL's
// memory BIOs. No sockets here. Law: after an error the session is unusable.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"

// Trust and protocol versions (1.2 and later): one for many connections.
typedef struct TlsContext TlsContext;
typedef struct Tls Tls; // one per connection

// ca_file "": the system's. verify false: encrypted, with an unknown peer. protocol: what is to be
// spoken inside ("h2"), offered by ALPN; NULL: nothing is offered.
// ERROR_CONFIG when the file cannot be read or holds no certificate.
TlsContext *tls_context_new(const char *ca_file, bool verify, const char *protocol, Error *err);
void tls_context_free(TlsContext *context);

// host: the name (or IP address) that the certificate must be for.
Tls *tls_new(TlsContext *context, const char *host, Error *err);
void tls_free(Tls *tls);

// Continues the handshake; appends bytes to be written to `wire`. *ret_done when it is
// complete.
bool tls_handshake(Tls *tls, Str received, Buf *wire, bool *ret_done, Error *err);
// Appends what `received` decrypts to. *ret_closed: the peer ended the session.
bool tls_read(Tls *tls, Str received, Buf *plain, Buf *wire, bool *ret_closed, Error *err);
bool tls_write(Tls *tls, Str plain, Buf *wire, Error *err);
bool tls_is_distrusted(const Tls *tls); // the handshake failed because of the peer's certificate
bool tls_speaks(const Tls *tls, Str protocol); // the peer chose it, once the handshake is complete
