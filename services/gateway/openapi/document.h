// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document as bytes, and a page for each kind of problem; `join` writes them while
// building.
#pragma once

#include <stddef.h>

extern const unsigned char openapi_document[];
extern const size_t openapi_document_len;
extern const char openapi_document_tag[]; // a quoted entity tag, of the bytes

typedef struct OpenapiProblem {
    const char *name; // the last part of its type: "not-found"
    const char *json;
    const char *html;
} OpenapiProblem;

extern const OpenapiProblem openapi_problems[];
extern const size_t openapi_problem_count;
