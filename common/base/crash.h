// SPDX-License-Identifier: Apache-2.0
// Crash points: every place between two durable effects has a name, and a test build can be killed
// there. Durable is what outlives the process: a commit, a stored event, an acked input, a mail
// that the vendor has, an answer that a client has read.
//
// Law: outside of test builds (CMake option STENTOR_CRASH_POINTS) a point is nothing, not even its
// name. In them STENTOR_CRASH_AT=name or name:N kills the process (SIGKILL) when it passes that
// point for the N-th time. A point stands in the table, in the code at one place (tests/lint), and
// by that in the matrix: tests/integration/faults/test_crash_points.py kills each service at each
// of its points, test_saga_crash.py order-saga.
//
// Besides the points: STENTOR_CRASH_ON=text kills the process when a worker hands over an input
// whose id or payload contains the text, and STENTOR_HANG_ON=text lets its loop stand for ever
// there: a poison message for every worker (tests/integration/security/test_finding_13_poison.py).
// With STENTOR_CRASH_AFTER_MS=n and STENTOR_CRASH_ON the handler does not see the input; it
// stays in hand for so long, while the loop turns, and kills then: a late killer.
//
// A new one: a row here, CRASH_POINT("...") in the code; and in the matrix what makes it pass, if
// that is not a plain e-mail.
#pragma once

// clang-format off
// X(name, services that pass it, the last durable effect before it, the next one after it)
#define CRASH_POINTS(X)                                                                                                                    \
    X("bus.publishing", "ingest gateway renderer dispatcher digest-flusher webhook-receiver order-saga outbox-relay webhook",                      \
      "what caused the event: a commit, its caller's 202, an input", "the event is stored")                                                \
    X("bus.stored", "ingest gateway renderer dispatcher digest-flusher webhook-receiver order-saga outbox-relay webhook",                          \
      "an event is stored; of several that belong together only some", "its publisher gets the ack")                                 \
    X("worker.letter_stored", "ingest gateway renderer dispatcher digest-flusher webhook-receiver order-saga webhook",                             \
      "a dead letter is stored", "its input's ack")                                                                                        \
    X("worker.unacked", "ingest gateway renderer dispatcher digest-flusher webhook-receiver order-saga webhook",                                   \
      "everything that an input leads to is committed and stored", "its ack")                                                              \
    X("guard.marked", "ingest gateway renderer dispatcher digest-flusher webhook-receiver order-saga webhook",                                     \
      "what came again is marked as in hand", "its worker sees it")                                                                        \
    X("guard.lifted", "ingest gateway renderer dispatcher digest-flusher webhook-receiver order-saga webhook",                                     \
      "the mark of what came again is lifted", "its acks")                                                                                 \
    X("projector.letter_stored", "archiver",                                                                                               \
      "a dead letter is stored", "the commit of the position behind its event")                                                            \
    X("projector.committed", "archiver outbox-relay",                                                                                      \
      "rows and positions are committed", "the next flush")                                                                                \
    X("keyring.created", "ingest gateway order-saga",                                                                                      \
      "a data key's row is committed", "anything that is sealed under it")                                                                 \
    X("api.noted", "gateway",                                                                                                                \
      "the audit log has a call of the API", "what the call does")                                                                         \
    X("gateway.asset_stored", "gateway",                                                                                                     \
      "an asset's bytes are in object storage and were read back", "its entry in CONFIG is stored")                                        \
    X("gateway.letters_noted", "gateway",                                                                                                  \
      "AUDIT has that dead letters are sent again", "the events that ask ingest for it are stored")                                        \
    X("gateway.end_stored", "gateway",                                                                                                     \
      "the end of a dropped dead letter's notification is stored", "the letter is deleted")                                                \
    X("job.claimed", "gateway",                                                                                                            \
      "the claim of a job is committed", "its child process begins")                                                                       \
    X("job.ended", "gateway",                                                                                                              \
      "nothing: a job's child process has its result", "the result is committed")                                                          \
    X("gateway.answer_claimed", "gateway",                                                                                                   \
      "the claim of an Idempotency-Key is committed", "what its request makes")                                                               \
    X("gateway.answer_made", "gateway",                                                                                                      \
      "what a request under an Idempotency-Key makes is made", "its answer is stored")                                                        \
    X("inbox.status_stored", "gateway",                                                                                                      \
      "what an inbox has to tell of its items is stored in STATUS", "its rows are deleted")                                                \
    X("inbox.end_stored", "gateway",                                                                                                       \
      "the end of a snooze or of an item is stored in FEED", "it is folded")                                                               \
    X("ingest.building", "ingest",                                                                                                         \
      "nothing", "the commit of the accept log")                                                                                           \
    X("ingest.committed", "ingest",                                                                                                        \
      "the accept log is committed", "the callers' answers")                                                                               \
    X("ingest.answered", "ingest",                                                                                                         \
      "the accept log is committed", "the answers, made but not written, and the publish")                                                 \
    X("ingest.refused", "ingest",                                                                                                          \
      "a request met a key that was there; what came with it is answered", "what its key holds is looked up")                              \
    X("ingest.published", "ingest",                                                                                                        \
      "every event of an accept row is stored", "the row's mark")                                                                          \
    X("ingest.marked", "ingest",                                                                                                           \
      "the marks of published rows are committed", "nothing: they are done")                                                               \
    X("ingest.sweep_claimed", "ingest",                                                                                                    \
      "the sweep's claim of unpublished rows is committed", "their events are published")                                        \
    X("batch.accepted", "ingest",                                                                                                          \
      "a step of a batch is committed to the accept log", "the batch's checkpoint")                                                        \
    X("batch.moved", "ingest",                                                                                                             \
      "the batch's checkpoint is committed", "the next step")                                                                              \
    X("batch.page_stored", "ingest",                                                                                                       \
      "a page of the members that a batch's query finds is stored", "the next page, or the first step")                                    \
    X("intake.stored", "ingest",                                                                                                           \
      "an application's event is stored in EVENTS", "its publisher's answer")                                                              \
    X("reseal.noted", "ingest",                                                                                                            \
      "that an event came in clear is committed", "its ack")                                                                               \
    X("reseal.copied", "ingest",                                                                                                           \
      "the sealed copy of an event in clear is stored", "its row says so")                                                                 \
    X("reseal.erased", "ingest",                                                                                                           \
      "the original of a sealed copy is erased", "its row is deleted")                                                                     \
    X("reseal.marked", "ingest",                                                                                                           \
      "the rows of a round say what is copied, those of erased originals are deleted", "the next round")                                    \
    X("resend.noted", "ingest",                                                                                                            \
      "which dead letter an event is about is committed", "the letter is sent again")                                                      \
    X("resend.published", "ingest",                                                                                                        \
      "the failed mail's next attempt is stored", "that is noted")                                                                         \
    X("resend.marked", "ingest",                                                                                                           \
      "that a failed mail's next attempt is stored is committed", "its dead letter is deleted")                                            \
    X("resend.deleted", "ingest",                                                                                                          \
      "the dead letter is deleted", "the mark that the event is done")                                                                     \
    X("dispatcher.claimed", "dispatcher",                                                                                                  \
      "the claim is committed", "the vendor gets the mail")                                                                            \
    X("dispatcher.taken_over", "dispatcher",                                                                                               \
      "a dead process's claim is taken over, its outcome counted as unknown", "the vendor gets the mail again")                        \
    X("dispatcher.outcome_committed", "dispatcher",                                                                                        \
      "what became of the mail is committed", "it is published")                                                                           \
    X("dispatcher.late_noted", "dispatcher",                                                                                               \
      "a late callback is noted", "its status is stored")                                                                                  \
    X("dispatcher.released", "dispatcher",                                                                                                 \
      "the claim of a mail that a drain gave up is released", "its input is given back")                                                   \
    X("dispatcher.moved", "dispatcher",                                                                                                    \
      "the claim of a mail that its vendor surely has not got is moved to the next one", "that one gets it")                               \
    X("http.answered", "dispatcher",                                                                                                       \
      "the vendor's HTTP API has answered for the mail", "the commit of its outcome")                                                      \
    X("inapp.stored", "dispatcher",                                                                                                        \
      "an item is stored in FEED", "the commit of its outcome")                                                                            \
    X("smtp.enveloped", "dispatcher",                                                                                                      \
      "the server has taken the envelope", "the message is written")                                                                       \
    X("smtp.dot_written", "dispatcher",                                                                                                    \
      "the whole message is written, final dot included", "the server's answer")                                                           \
    X("smtp.answered", "dispatcher",                                                                                                       \
      "the server has answered for the mail", "the commit of its outcome")                                                                 \
    X("flusher.inserted", "digest-flusher",                                                                                                \
      "due work is committed", "its input's ack")                                                                                          \
    X("flusher.claimed", "digest-flusher",                                                                                                 \
      "the claim of due work is committed", "it is published")                                                                             \
    X("flusher.published", "digest-flusher",                                                                                               \
      "due work is published", "its rows are deleted")                                                                                     \
    X("flusher.deleted", "digest-flusher",                                                                                                 \
      "the rows of published work are deleted", "nothing: it is done")                                                                     \
    X("flusher.frozen", "digest-flusher",                                                                                                  \
      "windows that are due are frozen", "what becomes of them is committed")                                                              \
    X("flusher.digested", "digest-flusher",                                                                                                \
      "what becomes of frozen windows is committed as due work", "it is claimed")                                                          \
    X("hook.place_dropped", "webhook",                                                                                                     \
      "the consumer of STATUS is deleted", "it is made again, where the first subscription begins")                                        \
    X("hook.categorised", "webhook",                                                                                                       \
      "categories of notifications are committed", "what their statuses become is on HOOK")                                                \
    X("hook.queued", "webhook",                                                                                                            \
      "rows of events in order are committed", "they are on HOOK")                                                                         \
    X("hook.claimed", "webhook",                                                                                                           \
      "the claim of deliveries is committed", "their endpoints get them")                                                                  \
    X("hook.answered", "webhook",                                                                                                          \
      "a tenant's endpoint has answered for a delivery", "the commit of its outcome")                                                      \
    X("hook.recorded", "webhook",                                                                                                          \
      "what became of deliveries is committed", "what follows is stored")                                                                  \
    X("hook.announced", "webhook",                                                                                                         \
      "the event that a subscription fails is stored", "its state in CONFIG")                                                              \
    X("webhook.stored", "webhook-receiver",                                                                                                \
      "the callback is stored", "the vendor's 200")                                                                                        \
    X("lmtp.stored", "webhook-receiver",                                                                                                   \
      "the bounce is stored", "the mail server's 250")                                                                                     \
    X("saga.committed", "order-saga",                                                                                                      \
      "a batch's states, inbox and outbox are committed", "its events' acks, its commands are published")                                  \
    X("saga.published", "order-saga",                                                                                                      \
      "a row of the outbox is stored in its stream", "its mark")                                                                           \
    X("saga.marked", "order-saga",                                                                                                         \
      "the marks of published rows are committed", "nothing: they are done")                                                               \
    X("saga.sweep_claimed", "order-saga",                                                                                                  \
      "the sweep's claim of unpublished rows is committed", "they are published")                                                \
    X("archiver.folded", "archiver",                                                                                                       \
      "nothing: what is folded is in memory", "the commit of rows and positions")                                                          \
    X("archiver.segment_put", "archiver",                                                                                                  \
      "a log segment is an object", "it is read back")                                                                                     \
    X("archiver.segment_verified", "archiver",                                                                                             \
      "a log segment is an object that was read back", "its row, or the next segment of its window")                                       \
    X("archiver.segments_committed", "archiver",                                                                                           \
      "the rows of a window's segments and the stream's position are committed", "the next window")                                        \
    X("storage.written", "archiver",                                                                                                       \
      "an object's bytes are a synced file of the folder", "it has the object's name")                                                     \
    X("storage.named", "archiver",                                                                                                         \
      "an object of the folder has its name", "what its caller does then")                                                                 \
    X("archiver.owner_committed", "archive",                                                                                               \
      "the bucket's next owner is committed to Postgres", "owner.json in the bucket")                                                      \
    X("archiver.owner_put", "archive",                                                                                                     \
      "owner.json names this process's epoch", "the first step of a unit")                                                                 \
    X("archiver.segments_deleted", "archiver",                                                                                             \
      "segments past their time are deleted in object storage", "their rows say so")                                                       \
    X("archiver.unit_sealed", "archive",                                                                                                   \
      "a unit's rows change no more", "they are counted")                                                                                  \
    X("archiver.unit_counted", "archive",                                                                                                  \
      "what a unit holds is committed", "its first object")                                                                                \
    X("archiver.part_put", "archive",                                                                                                      \
      "a part is an object", "its row")                                                                                                    \
    X("archiver.part_recorded", "archive",                                                                                                 \
      "a part's row is committed", "the next part, or the unit's move")                                                                    \
    X("archiver.part_verified", "archive",                                                                                                 \
      "a part was read back, which its row says", "the next one, or the unit's move")                                                      \
    X("archiver.manifest_made", "archive",                                                                                                 \
      "a manifest's text is committed", "it is put into the bucket")                                                                       \
    X("archiver.manifest_put", "archive",                                                                                                  \
      "a manifest is in the bucket", "the unit's row bears it")                                                                            \
    X("archiver.manifest_stored", "archive",                                                                                               \
      "a unit bears its manifest", "the next step")                                                                                        \
    X("archiver.unit_checked", "archive",                                                                                                  \
      "a unit's rows were counted once more", "its tables are detached")                                                                   \
    X("archiver.unit_detached", "archive",                                                                                                 \
      "a unit's tables are detached", "they are dropped, after the grace")                                                                 \
    X("archiver.unit_seen", "archive",                                                                                                     \
      "every object was seen in the bucket", "the detached tables are dropped")                                                            \
    X("archiver.unit_dropped", "archive",                                                                                                  \
      "the detached tables are gone", "nothing: the unit is removed")                                                                      \
    X("archiver.restore_begun", "archive",                                                                                                 \
      "a restore's tables are there, empty", "the first object's rows")                                                                    \
    X("archiver.part_restored", "archive",                                                                                                 \
      "an object's rows are in a restore's table", "the next object's")                                                                    \
    X("archiver.restore_checked", "archive",                                                                                               \
      "a restore's tables are counted and closed", "they are attached")                                                                    \
    X("archiver.restore_attached", "archive",                                                                                              \
      "a restored unit is attached", "nothing: until its end")                                                                             \
    X("archiver.restore_ended", "archive",                                                                                                 \
      "a restore's tables are gone", "nothing: the unit is removed again")                                                                 \
    X("archiver.unit_expired", "archive",                                                                                                  \
      "a unit is expired and its manifest says so", "its first object is deleted")                                                         \
    X("archiver.object_deleted", "archive",                                                                                                \
      "an object is deleted", "its row says so")                                                                                           \
    X("archiver.deletion_recorded", "archive",                                                                                             \
      "an object's row says that it is deleted", "the next one")                                                                           \
    X("archiver.cold_put", "archive",                                                                                                      \
      "an object is in the cold tier too", "its row")                                                                                      \
    X("archiver.cold_recorded", "archive",                                                                                                 \
      "an object of the cold tier has replaced its former", "the next one, or the manifest")                                               \
    X("outbox.claimed", "outbox-relay",                                                                                                    \
      "the claim of an application's rows is committed", "their letters are noted, or they are published")                                 \
    X("outbox.noted", "outbox-relay",                                                                                                      \
      "the letters of claimed requests are committed", "they are published")                                                               \
    X("outbox.published", "outbox-relay",                                                                                                  \
      "every row of a claim is stored", "their marks")                                                                                     \
    X("outbox.marked", "outbox-relay",                                                                                                     \
      "the marks of published rows are committed, and their claim is gone", "nothing: they are done")                                      \
    X("outbox.feedback", "outbox-relay",                                                                                                       \
      "what became of requests is committed with the position in STATUS", "the next flush")                                                \
    X("keywork.made", "keys", \
      "the file of a new epoch key is there", "`current` names it") \
    X("keywork.used", "keys", \
      "`current` names the new epoch key", "Postgres knows it") \
    X("keywork.opened", "keys", \
      "the new epoch is open in Postgres, the one before is closed", "data keys are wrapped again") \
    X("keywork.begun", "keys", \
      "changes of data keys are listed", "they are copied") \
    X("keywork.copied", "keys", \
      "all data keys are copied into a new table", "it takes the old one's place") \
    X("keywork.swapped", "keys", \
      "the new table of data keys is the table", "the epochs before are empty") \
    X("keywork.emptied", "keys", \
      "an epoch wraps no data key, and Postgres knows it", "AUDIT has its key's end") \
    X("keywork.witnessed", "keys", \
      "AUDIT has the end of an epoch key", "it is destroyed") \
    X("keywork.destroyed", "keys", \
      "an epoch key is destroyed", "Postgres knows it") \
    X("keywork.dumped", "keys", \
      "a dump of the keys is written", "it has its name") \
    X("keywork.stored", "keys", \
      "a dump of the keys is an object", "older ones are deleted") \
    X("epochs.set_aside", "keys",                                                                                            \
      "a key's file has another name, which no program reads", "its bytes are written over")                                               \
    X("epochs.overwritten", "keys",                                                                                          \
      "a key's file is written over with random bytes", "it is removed")                                                                   \
    X("facts.stored", "facts",                                                                                                             \
      "a tenant's facts of a day are in object storage", "those of an earlier writing are deleted")                                         \
    X("erasure.asked", "erasure",                                                                                                          \
      "the row of an erasure is committed", "AUDIT has the request")                                                                       \
    X("erasure.noted", "erasure",                                                                                                          \
      "AUDIT has the request", "the person's keys are destroyed, or restricted")                                                           \
    X("erasure.executed", "erasure",                                                                                                       \
      "the person's keys are destroyed and their rows cleared", "CONFIG revokes the links of their mails")                                 \
    X("erasure.revoked", "erasure",                                                                                                        \
      "CONFIG revokes the links of their mails", "PEOPLE has the removal")                                                                 \
    X("erasure.removed", "erasure",                                                                                                        \
      "PEOPLE has the removal", "FEED has the removal of what lies in the inbox")                                                          \
    X("erasure.inbox_emptied", "erasure",                                                                                                  \
      "FEED has the removal of what lies in the inbox", "REPLIES has nothing that the person wrote")                                       \
    X("erasure.replies_deleted", "erasure",                                                                                                \
      "REPLIES has nothing that the person wrote", "AUDIT has that it is done")                                                            \
    X("erasure.noted_done", "erasure",                                                                                                     \
      "AUDIT has that it is done", "the row says so")                                                                                      \
    X("erasure.records_ended", "erasure",                                                                                                  \
      "record keys whose duty has ended are destroyed", "AUDIT has that")                                                                  \
    X("erasure.certified", "erasure",                                                                                                      \
      "a certificate is the chain's last one", "it is an object, too")                                                                     \
    X("erasure.replayed", "erasure",                                                                                                       \
      "an erasure is done again in a restored database", "the next one, and the gate is opened")                                           \
    X("init.file_written", "cli",                                                                                                          \
      "a file of the installation's folder is there", "the next one")                                                                      \
    X("init.database_made", "cli",                                                                                                         \
      "the database is made", "its roles")                                                                                                 \
    X("init.password_set", "cli",                                                                                                          \
      "a role has the folder's password", "the next role's")                                                                               \
    X("init.key_stored", "cli",                                                                                                            \
      "the operator's key is registered in CONFIG", "nothing: it is done")                                                                 \
    X("migrate.applied", "cli",                                                                                                            \
      "a migration and its row are committed", "the next migration")                                                                       \
    X("config.ordered", "cli",                                                                                                             \
      "an entry of CONFIG is stored again, with what it replaces", "the next one, and the history's copies")                               \
    X("rebuild.orders_replacing", "cli",                                                                                                   \
      "nothing: what replaces the orders that differ is not committed", "its commit")                                                      \
    X("rebuild.orders_replaced", "cli",                                                                                                    \
      "the orders that differ are replaced", "their copy is dropped")                                                                      \
    X("command.noted", "cli",                                                                                                              \
      "the audit log has what a command does past the API", "it is done")                                                                  \
    X("topology.applied", "cli",                                                                                                           \
      "a stream or consumer is made", "the next one")
// clang-format on

#ifdef STENTOR_CRASH_POINTS
#include "common/base/buf.h"

#define CRASH_POINT(name) crash_pass("" name)
#define CRASH_POINT_IF(name, condition) ((condition) ? crash_pass("" name) : (void)0)

#define CRASH_INPUT(id, payload) crash_input((id), (payload))
#define CRASH_LATE() crash_late()

// Kills the process when STENTOR_CRASH_AT says so, after a line on stderr; costs a look at two
// static variables when it is not set. Only from the loop's thread, or keywork's. Ends the process
// with 2 when STENTOR_CRASH_AT names no point.
void crash_pass(const char *name);
bool crash_input(Str id, Str payload); // true: a late killer, which no handler sees before it kills
void crash_late(void);                 // from time to time
// The points that `service` ("dispatcher", "cli") passes, one a line: the name, a tab, what lies
// before it, a tab, what comes after it. false: `out` is full.
bool crash_points_print(const char *service, Buf *out);
#else
#define CRASH_POINT(name) ((void)0)
#define CRASH_POINT_IF(name, condition) ((void)0)
#define CRASH_INPUT(id, payload) false
#define CRASH_LATE() ((void)0)
#endif
