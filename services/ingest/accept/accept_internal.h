// SPDX-License-Identifier: Apache-2.0
// What accept.c and accept_answer.c share: who waits, and how a submission ends.
#pragma once

#include "common/base/map.h"
#include "common/model/company.h"
#include "services/ingest/accept/accept.h"
#include "services/ingest/accept/accept_group.h"

// What waits of one tenant.
typedef struct TenantQueue {
    Submission *head; // gathered, oldest first
    Submission *tail;
    size_t waiting; // notifications, those in flight included
    size_t waiting_bytes;
    struct TenantQueue *next; // behind it in turn
} TenantQueue;

struct Accept {
    AcceptOptions options;
    Gate gate;
    uv_timer_t pump_timer;
    Map *tenants;       // TenantQueue, of those of whom something waits
    TenantQueue *first; // whose turn it is, of those of whom something is gathered
    TenantQueue *last;
    size_t gathered; // notifications in these queues
    size_t gathered_bytes;
    size_t waiting; // the same and those in flight
    size_t waiting_bytes;
    Company company;                  // of those that hand something in
    Group *groups[ACCEPT_GROUPS_MAX]; // NULL: a free place
    Map *flights;                     // "<tenant>/<scope>/<key>" -> Submission
    void (*on_freed)(void *ctx);
    void *freed_ctx;
};

// The submission is its owner's again after its `done`.
void accept_answer(Accept *a, Submission *s, const AcceptResult *result);
AcceptResult accept_result_of(const Submission *s, const AcceptPart *part);
void accept_begin_waiting(Accept *a, TenantQueue *q, const Submission *s);
TenantQueue *accept_queue_of(Accept *a, Str tenant);
