// SPDX-License-Identifier: Apache-2.0
// Which message a stream or a subject carries, and which one is sealed as a channel's content.
#pragma once

#include "common/codec/event.h"
#include "common/model/enums.h"

// NULL: a stream whose events are about no notification.
const ProtobufCMessageDescriptor *event_type_of_stream(Str stream);
// The same by the subject, under which an application's notify commands are found too.
const ProtobufCMessageDescriptor *event_type_of_subject(Str subject);
// Of Rendered.content; NULL: the channel has none.
const ProtobufCMessageDescriptor *event_type_of_content(Channel channel);
