-- SPDX-License-Identifier: Apache-2.0
-- What waits for a time, and the digests: claimed once, cancelled by what is not caused later.
SELECT no_plan();

SELECT col_is_pk('digest_flusher', 'due_work', ARRAY['work_id']::name[], 'due_work has its key');
SELECT has_index('digest_flusher', 'due_work', 'due_work_due_at', 'what is due is found by its time');
PREPARE wait(text, text) AS INSERT INTO digest_flusher.due_work (work_id, tenant_id, notification_id, reason, due_at, subject, event_id, payload, status)
    VALUES ($1, 'acme', 'ntf_1', 'schedule', now() + interval '1 hour', 'ntf.request.normal.acme', 'e', '\x01', $2);
SELECT lives_ok($$EXECUTE wait('one', NULL)$$, 'work waits');
SELECT throws_ok($$EXECUTE wait('one', NULL)$$, '23505', NULL, 'once');
SELECT throws_ok($$EXECUTE wait('two', 'sent')$$, '23514', NULL, 'a status that is reported from here is an end, or queued');
SELECT is_empty($$SELECT * FROM digest_flusher.claim_work(interval '1 minute', 10)$$, 'what is not due is not claimed');
UPDATE digest_flusher.due_work SET due_at = now() - interval '1 second';
SELECT isnt_empty($$SELECT * FROM digest_flusher.claim_work(interval '1 minute', 10)$$, 'what is due is');
SELECT is_empty($$SELECT * FROM digest_flusher.claim_work(interval '1 minute', 10)$$, 'once');
SELECT is(digest_flusher.done(ARRAY['one', 'unknown']), 1::bigint, 'what went out is gone');

SELECT col_is_pk('digest_flusher', 'digest_windows', ARRAY['tenant_id', 'window_id']::name[], 'digest_windows has its key');
PREPARE digest(text, text) AS INSERT INTO digest_flusher.digest_windows (tenant_id, window_id, recipient_id, category, channel, flush_at, due_at, template,
    template_version, locale, state, opened_at) VALUES ('acme', $1, 'rcp_1', 'academic', 'email', now(), now(), 'digest', '1.0.0', 'en', $2, now());
SELECT lives_ok($$EXECUTE digest('dgw_1', 'open')$$, 'a window is opened');
SELECT throws_ok($$EXECUTE digest('dgw_1', 'open')$$, '23505', NULL, 'once');
SELECT throws_ok($$EXECUTE digest('dgw_2', 'closed')$$, '23514', NULL, 'a state is one of four');
SELECT * FROM finish();
