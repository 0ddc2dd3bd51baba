// SPDX-License-Identifier: Apache-2.0
// A test of a template version: one notification as it would be sent, to an address of the tester's
// choice. The gateway asks for it by an event, evt.<tenant>.SendTemplateTest with a NotifyCommand,
// and ingest accepts it as any other. What sets it apart is here, so that both agree: a draft may
// be tested too, its category is transactional, it expires, and its correlation id names what is
// tested. Pure.
#pragma once

#include "common/base/id.h"
#include "common/request/request.h"

#define TEMPLATE_TEST_EVENT "SendTemplateTest"
#define TEMPLATE_TEST_CORRELATION "test-send/" // then key, '/', version

enum { TEMPLATE_TEST_EXPIRES_S = 3600 };

// Before request_check. false: the version is missing.
bool template_test_mark(Request *request, int64_t now_us, Arena *arena, FieldError *err);
// The id of the notification that such an event makes. at_us: its produced_at_us.
void template_test_id(Str tenant, Str event_id, int64_t at_us, char ret[ID_SIZE]);
