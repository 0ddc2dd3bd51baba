// SPDX-License-Identifier: Apache-2.0
// The application's side of the queue, driven by lines of JSON on its standard input; one line answers each:
//   {"do": "fill", "first": N, "count": N, "recipients": N, "body": TEXT}   pauses the queue and adds jobs
//   {"do": "resume"}   lets the workers begin
//   {"do": "counts"}   {"completed": N, "failed": N, "open": N}
//   REDIS_PORT=... node queue.mjs
import { createInterface } from "node:readline";
import { Queue } from "bullmq";

const BULK = 1000;
const queue = new Queue("email", {
  connection: { host: "127.0.0.1", port: Number(process.env.REDIS_PORT) },
  defaultJobOptions: { attempts: 5, backoff: { type: "exponential", delay: 1000 } },
});

function job(index, recipients, body) {
  const data = { to: `memo${index % recipients}@example.com`, subject: `Memo ${index} created`, body };
  return { name: "memo.created", data, opts: { jobId: `memo-${index}` } };
}

async function fill({ first, count, recipients, body }) {
  await queue.pause();
  for (let done = 0; done < count; done += BULK) {
    const indexes = Array.from({ length: Math.min(BULK, count - done) }, (_, at) => first + done + at);
    await queue.addBulk(indexes.map((index) => job(index, recipients, body)));
  }
  return {};
}

async function counts() {
  const { completed, failed, ...open } = await queue.getJobCounts();
  return { completed, failed, open: Object.values(open).reduce((sum, count) => sum + count, 0) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const answer = command.do === "fill" ? await fill(command) : command.do === "resume" ? await queue.resume() : await counts();
  console.log(JSON.stringify(answer ?? {}));
}
await queue.close();
