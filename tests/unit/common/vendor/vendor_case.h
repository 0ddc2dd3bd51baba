// SPDX-License-Identifier: Apache-2.0
// What the tests of the vendors share: a mail with everything in it, requests compared to the byte,
// and the class of each of a vendor's answers as rows of a table.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/vendor/vendor_build.h"

#define CASE_NID "ntf_01M82XS89VEV77VD8AS0MCMH0B"

enum { CASE_TEXT_MAX = 16384 };

// Of the answers: 2026-11-26T20:00:00Z.
#define CASE_READ_US INT64_C(1795723200000000)

static inline VendorMail case_mail(void)
{
    return (VendorMail){
        .tenant = STR("acme"),
        .notification_id = STR(CASE_NID),
        .attempt = 2,
        .key = STR(CASE_NID ".2"),
        .category = STR("billing"),
        .template_key = STR("invoice"),
        .from = {STR("Shop"), STR("shop@example.com")},
        .to = {STR("Bob"), STR("bob@example.org")},
        .subject = STR("Invoice 17"),
        .html = STR("<p>17 &euro;</p>"),
        .text = STR("17 EUR"),
        .message_id = STR(CASE_NID "@mail.example.com"),
        .message = STR("From: Shop <shop@example.com>\r\nTo: Bob <bob@example.org>\r\n"
                       "Message-ID: <" CASE_NID "@mail.example.com>\r\nSubject: Invoice 17\r\n"
                       "\r\n17 EUR\r\n"),
    };
}

// "Name: value\n" of each header.
static inline const char *case_headers(const VendorRequest *request, Arena *arena)
{
    const char *text = "";
    for (size_t i = 0; i < request->header_count; i++) {
        const VendorPair *header = &request->headers[i];
        text = arena_printf(
            arena, "%s" STR_FMT ": " STR_FMT "\n", text, STR_ARG(header->name),
            STR_ARG(header->value));
    }
    return text;
}

static inline void case_request_is(
    const VendorRequest *request, Arena *arena, const char *method, const char *url,
    const char *headers, const char *body)
{
    assert_string_equal(request->method, method);
    assert_string_equal(arena_cstr(arena, request->url), url);
    assert_string_equal(case_headers(request, arena), headers);
    assert_string_equal(arena_cstr(arena, request->body), body);
}

static inline void case_build(
    const VendorApi *api, const VendorMail *mail, const VendorAccount *account, Arena *arena,
    VendorRequest *ret)
{
    Error err = {0};
    if (!api->build(mail, account, CASE_READ_US, arena, ret, &err)) {
        fail_msg("%s: %s", api->name, err.text);
    }
    assert_true(ret->body.len > 0);
}

// build() refuses the mail with this kind and text.
static inline void case_refused(
    const VendorApi *api, const VendorMail *mail, const VendorAccount *account, ErrorKind kind,
    const char *text)
{
    Arena *arena = arena_new(0);
    VendorRequest request;
    Error err = {0};
    assert_false(api->build(mail, account, CASE_READ_US, arena, &request, &err));
    assert_string_equal(err.text, text);
    assert_int_equal(err.kind, kind);
    arena_free(arena);
}

static inline VendorAnswer case_answer(int status, const VendorPair *header, const char *body)
{
    return (VendorAnswer){
        .status = status,
        .headers = header,
        .header_count = header->name.len > 0 ? 1 : 0,
        .body = str_from(body),
        .read_us = CASE_READ_US};
}

typedef struct CaseRow {
    const char *what;
    int status;
    const char *header, *value; // NULL: none
    const char *body;
    SendState state;
    ReplyClass reply;
    uint32_t retry_after_ms;
    const char *text;
} CaseRow;

static inline void case_rows(const VendorApi *api, const CaseRow *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const CaseRow *row = &rows[i];
        Arena *arena = arena_new(0);
        VendorPair header = {str_from(row->header), str_from(row->value)};
        VendorAnswer answer = case_answer(row->status, &header, row->body);
        SendResult result;
        memset(&result, 0xff, sizeof result); // read() sets every field
        api->read(&answer, arena, &result);
        const char *text = arena_cstr(arena, result.text);
        if (result.state != row->state || result.reply != row->reply ||
            result.retry_after_ms != row->retry_after_ms || strcmp(text, row->text) != 0) {
            fail_msg(
                "%s: state %d, reply %d, %u ms, '%s'", row->what, (int)result.state,
                (int)result.reply, (unsigned)result.retry_after_ms, text);
        }
        assert_string_equal(arena_cstr(arena, result.code), arena_printf(arena, "%d", row->status));
        assert_int_equal(result.segments, 0);
        assert_int_equal(result.cost_micros, 0);
        arena_free(arena);
    }
}

// The vendor took it under this id.
static inline void case_accepted(
    const VendorApi *api, int status, const char *header, const char *value, const char *body,
    const char *message_id)
{
    Arena *arena = arena_new(0);
    VendorPair pair = {str_from(header), str_from(value)};
    VendorAnswer answer = case_answer(status, &pair, body);
    SendResult result;
    api->read(&answer, arena, &result);
    assert_int_equal(result.state, SEND_ANSWERED);
    assert_int_equal(result.reply, REPLY_ACCEPTED);
    assert_string_equal(arena_cstr(arena, result.vendor_message_id), message_id);
    arena_free(arena);
}
