// SPDX-License-Identifier: Apache-2.0
// The envelope in which SNS brings SES' events over HTTPS, and its signature: RSA over the values
// of named fields, by a certificate that the message names. Law: the certificate and the
// confirmation are fetched from sns.<region>.amazonaws.com alone, and the region is the topic's.
// Pure. Sources: docs.aws.amazon.com/sns, "Verifying message signatures";
// aws-js-sns-message-validator.
#pragma once

#include "common/vendor/vendor_callback.h"

typedef struct SnsMessage {
    Str type; // "Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"
    Str id, topic, message, subject, timestamp, token, subscribe_url;
    Str version, signature, certificate_url;
    bool has_subject;
} SnsMessage;

// Slices live in `arena`. ERROR_PERMANENT names the field that is missing.
bool sns_read(Str body, Arena *arena, SnsMessage *ret, Error *err);
// https://sns.<region>.amazonaws.com/..., with the region of the topic; no user, port or fragment.
bool sns_is_pinned(Str url, Str topic);
// The same, ending in ".pem".
bool sns_is_certificate_url(Str url, Str topic);
bool sns_is_topic(Str text); // "arn:aws:sns:<region>:<account>:<name>"
// One certificate in PEM and nothing else.
bool sns_check_certificate(Str pem, Error *err);
