// SPDX-License-Identifier: Apache-2.0
// A bucket as its URL and the vendor name it: s3://bucket/prefix?region=...&endpoint=... Pure.
#pragma once

#include "common/base/buf.h"
#include "common/base/error.h"
#include "common/storage/sigv4.h"

typedef enum S3Condition { S3_BY_ETAG, S3_BY_GENERATION, S3_NO_CONDITION } S3Condition;

enum { S3_BUCKET_SIZE = 64, S3_REGION_SIZE = 64, S3_HOST_SIZE = 272, S3_PREFIX_SIZE = 512 };

typedef struct S3Url {
    char origin[S3_HOST_SIZE + 8]; // "https://s3.eu-west-1.amazonaws.com"
    char host[S3_HOST_SIZE];       // as the Host header has it: the port unless it is the scheme's
    char bucket[S3_BUCKET_SIZE];
    char prefix[S3_PREFIX_SIZE]; // "" or with '/' at its end
    char region[S3_REGION_SIZE];
    char ca_file[256]; // "": the system's certificates
    S3Condition condition;
    const SigV4Words *words;
    int64_t patience_ms, timeout_ms;
} S3Url;

// vendor: "aws" (NULL and "" too), "gcs" or "ceph". Parameters of the URL:
//   endpoint   https://host[:port]; of "aws" and "gcs" their own, else required
//   region     "us-east-1" with an endpoint; required of aws without one; "auto" of gcs
//   condition  "etag", "generation" (gcs) or "none": how a PUT says what it expects
//   patience_s 60: for how long a call is tried again that gets nowhere; timeout_s 30: silence that
//   ends one attempt ca_file    who signed the server's certificate
// CONFIG names the part.
bool s3_url_parse(const char *url, const char *vendor, S3Url *ret, Error *err);
