// SPDX-License-Identifier: Apache-2.0
// A connection's writes, and whether the final dot of a mail has been sent.
#include "common/base/crash.h"
#include "services/dispatcher/vendor/smtp/smtp_client_internal.h"

// Whether the dot was sent is decided before the close: afterwards libuv counts dropped bytes as
// written.
void smtp_wire_decide_dot(SmtpClient *client)
{
    bool flushed = !client->session.dot_in_out && client->dot_at != UINT64_MAX;
    uint64_t queued = uv_stream_get_write_queue_size((uv_stream_t *)&client->tcp);
    if (!flushed || client->wire_total - queued < client->dot_at) {
        client->dot_at = UINT64_MAX; // surely not sent
    }
}

static void on_stream_written(uv_write_t *request, int status)
{
    SmtpClient *client = request->data;
    client->writing = false;
    if (smtp_client_is_closing(client)) {
        return;
    }
    if (status < 0) {
        smtp_client_drop(client, "write", status);
        return;
    }
    smtp_wire_flush(client);
}

// Hands `bytes` to the system, and what it does not take at once to libuv; empties the buffer.
static void send_bytes(SmtpClient *client, Buf *bytes)
{
    uv_buf_t all = uv_buf_init(bytes->ptr, (unsigned)bytes->len);
    int sent = uv_try_write((uv_stream_t *)&client->tcp, &all, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        smtp_client_drop(client, "write", sent);
        return;
    }
    size_t done = sent > 0 ? (size_t)sent : 0;
    client->wire_total += bytes->len;
    if (done < bytes->len) {
        buf_clear(&client->flight);
        buf_append(&client->flight, bytes->ptr + done, bytes->len - done);
        uv_buf_t rest = uv_buf_init(client->flight.ptr, (unsigned)client->flight.len);
        client->write.data = client;
        client->writing = true;
        int status =
            uv_write(&client->write, (uv_stream_t *)&client->tcp, &rest, 1, on_stream_written);
        if (status < 0) {
            client->writing = false;
            smtp_client_drop(client, "write", status);
            return;
        }
    }
    buf_clear(bytes);
    CRASH_POINT_IF("smtp.dot_written", client->session.sending != NULL && !client->writing);
}

static void mark_dot(SmtpClient *client)
{
    SmtpSession *session = &client->session;
    if (session->dot_in_out) {
        // Inside TLS the dot's place is not known: from the first byte of this write on it may have
        // arrived.
        client->dot_at =
            client->wire_total + 1 + (client->tls == NULL ? session->dot_offset : client->wire.len);
        session->dot_in_out = false;
    }
}

void smtp_wire_flush(SmtpClient *client)
{
    Buf *out = &client->session.out;
    if (client->writing || !smtp_client_is_open(client)) {
        return;
    }
    mark_dot(client);
    if (client->tls == NULL) {
        if (out->len > 0) {
            send_bytes(client, out);
        }
        return;
    }
    Error err = {0};
    if (out->len > 0 && client->session.encrypted) {
        if (!tls_write(client->tls, buf_view(out), &client->wire, &err)) {
            smtp_client_drop_with(client, &err);
            return;
        }
        buf_clear(out);
    }
    if (client->wire.len > 0) {
        send_bytes(client, &client->wire);
    }
}
