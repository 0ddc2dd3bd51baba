// SPDX-License-Identifier: Apache-2.0
// What smtp_client.c and smtp_wire.c share.
#pragma once

#include "services/dispatcher/vendor/smtp/smtp_client.h"

enum { READ_CHUNK = 16 * 1024 };

struct SmtpClient {
    SmtpClientContext context;
    SmtpSession session;
    SmtpReplyParser parser;
    uv_tcp_t tcp;
    uv_getaddrinfo_t lookup;
    uv_connect_t connect;
    uv_write_t write;
    SmtpClientState state;
    unsigned callbacks; // of the look-up and of the closed handle, still to come: then it is freed
    bool was_ready;     // it has been in SMTP_CLIENT_READY, also when it is closed
    bool writing;       // libuv still holds `flight`
    bool turning;       // inside turn(): a wake now does nothing
    uint64_t replies;   // whole ones: a server that drips bytes gains no time
    Tls *tls;
    Buf plain;           // decrypted, not yet parsed
    Buf wire;            // encrypted, not yet written
    Buf flight;          // what uv_write() still holds
    uint64_t wire_total; // bytes handed to the system or to libuv
    uint64_t
        dot_at; // position on the wire up to which the final dot of `sending` is surely not sent
    uint64_t deadline_ms; // of the reply that is waited for, or of idleness
    Error why;
    char chunk[READ_CHUNK];
};

static inline bool smtp_client_is_closing(const SmtpClient *client)
{
    return client->state >= SMTP_CLIENT_CLOSING;
}

// Connected, and not closing.
static inline bool smtp_client_is_open(const SmtpClient *client)
{
    return client->state >= SMTP_CLIENT_SETTING_UP && !smtp_client_is_closing(client);
}

// smtp_client.c: both close the connection, unless it is closing already.
void smtp_client_drop(SmtpClient *client, const char *what, int status);
void smtp_client_drop_with(SmtpClient *client, Error *err);

// smtp_wire.c
void smtp_wire_flush(SmtpClient *client);      // writes what there is, unless a write is under way
void smtp_wire_decide_dot(SmtpClient *client); // before the close: sets dot_at to what is known
