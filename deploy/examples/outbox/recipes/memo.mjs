// SPDX-License-Identifier: Apache-2.0
// A memo and its e-mail in one transaction, with node-postgres:
//   npm ci && DATABASE_URL=postgresql://... node memo.mjs DEPARTMENT TITLE RECIPIENT BODY
// Prints the memo's id. On any error nothing of either is kept.
import pg from "pg";

const INSERT_MEMO = `
  INSERT INTO memos (memo_number_prefix, department_code, title) VALUES ('MEMO', $1, $2) RETURNING id`;
const INSERT_EMAIL = `
  INSERT INTO email_outbox (memo_id, event_type, payload, recipient_email, notification_type, idempotency_key)
  VALUES ($1::uuid, 'memo.created', jsonb_build_object('subject', $2::text, 'body', $3::text), $4::text, 'MEMO_CREATED',
          $1::uuid || '-memo.created-' || md5($4::text))`;

async function createMemo(client, { department, title, recipient, body }) {
  await client.query("BEGIN");
  try {
    const { rows } = await client.query(INSERT_MEMO, [department, title]);
    await client.query(INSERT_EMAIL, [rows[0].id, `Memo ${title} created`, body, recipient]);
    await client.query("COMMIT");
    return rows[0].id;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}

const [department, title, recipient, body] = process.argv.slice(2);
if (body === undefined) {
  console.error("usage: node memo.mjs DEPARTMENT TITLE RECIPIENT BODY");
  process.exit(2);
}
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
try {
  await client.connect();
  console.log(await createMemo(client, { department, title, recipient, body }));
} catch (error) {
  console.error(`memo: ${error.message}`);
  process.exitCode = 1;
} finally {
  await client.end();
}
