// SPDX-License-Identifier: Apache-2.0
// A pull parser for the XML that object storage answers with: elements and text. Not here:
// attributes (skipped), DTDs, CDATA and entities but the five of XML (refused). Pure; its input is
// foreign, and bounded by whoever received it.
#pragma once

#include "common/base/buf.h"

enum { S3_XML_DEPTH_MAX = 16, S3_XML_TEXT_MAX = 16 * 1024 };

typedef enum S3XmlEvent {
    S3_XML_OPEN,  // name is the element's
    S3_XML_CLOSE, // name and, of an element without elements in it, text
    S3_XML_END,   // the root is closed
    S3_XML_BAD,   // no document: `why` says it
} S3XmlEvent;

typedef struct S3Xml {
    Str rest;
    Str open[S3_XML_DEPTH_MAX]; // names of the elements that are open, without their prefix
    size_t depth;
    bool closes; // <a/>: its end is the next event
    bool closed; // the last event was a close
    bool leaf;   // no element since the last one was opened
    bool rooted; // there was a root
    Buf text;
    Str name;
    const char *why;
} S3Xml;

void s3_xml_init(S3Xml *xml, Str document); // the document outlives it
void s3_xml_done(S3Xml *xml);
S3XmlEvent s3_xml_next(S3Xml *xml);
Str s3_xml_text(const S3Xml *xml); // after S3_XML_CLOSE; references resolved; until the next event
