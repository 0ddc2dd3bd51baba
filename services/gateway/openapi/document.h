// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document as bytes; `join` writes document.c while building.
#pragma once

#include <stddef.h>

extern const unsigned char openapi_document[];
extern const size_t openapi_document_len;
extern const char openapi_document_tag[]; // a quoted entity tag, of the bytes
