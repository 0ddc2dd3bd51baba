// SPDX-License-Identifier: Apache-2.0
// Files of web pages, as bytes of the program (web.cmake): scripts, styles and pages, shown to
// anyone, without a key. What a page then asks for are routes of the API, by a token or a session.
// Law: only what the table names; never a file of the disk.
#pragma once

#include "common/http/server.h"

// How long a browser may keep it, and what it may do.
typedef enum WebKind {
    WEB_MODULE, // of a name that stays: for pages of every origin; asked for again after 5 minutes
    WEB_HASHED, // its name has its hash: kept for ever, for pages of this origin
    WEB_PAGE,   // asked for each time; scripts and styles of this origin alone, in no frame
    WEB_FRAME,  // asked for each time; shows what a stranger wrote: runs and loads nothing
} WebKind;

typedef struct WebFile {
    const char *path; // "/inbox/stentor-inbox.js"
    const char *type;
    WebKind kind;
    const char *hash;        // SHA-256 in hex, of what is not compressed
    Str plain, gzip, brotli; // brotli may be empty
} WebFile;

extern const WebFile web_table[]; // web_table.c, made by the build
extern const size_t web_table_count;

typedef struct WebFiles {
    bool demo; // the demo page is shown
} WebFiles;

bool web_is_path(Str path); // everything below /inbox/ and /console/
// NULL: there is none, or it is not shown.
const WebFile *web_find(const WebFiles *files, Str path);

typedef enum WebCoding { WEB_PLAIN, WEB_GZIP, WEB_BROTLI } WebCoding;

// By the value of Accept-Encoding.
WebCoding web_choose(const WebFile *file, Str accepted);

bool web_files_admit(HttpRequest *request); // false: answered
void web_files_handle(const WebFiles *files, HttpRequest *request);
