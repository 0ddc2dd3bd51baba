// SPDX-License-Identifier: Apache-2.0
// A BullMQ worker that sends each job as an e-mail with nodemailer over a pool of connections, for comparison.
//   REDIS_PORT=... SMTP_PORT=... [CONCURRENCY=50] [CONNECTIONS=10] node worker.mjs
import { Worker } from "bullmq";
import nodemailer from "nodemailer";

const mailer = nodemailer.createTransport({
  host: "127.0.0.1",
  port: Number(process.env.SMTP_PORT),
  secure: false,
  ignoreTLS: true,
  pool: true,
  maxConnections: Number(process.env.CONNECTIONS ?? 10), // nodemailer's default is 5
  maxMessages: Infinity, // the default makes a new connection after every 100 mails
});

const worker = new Worker(
  "email",
  async (job) => {
    const { to, subject, body } = job.data;
    await mailer.sendMail({
      from: "Memo <memo@memo.example>",
      to,
      subject,
      text: body,
      messageId: `<${job.id}@memo.example>`,
    });
  },
  {
    connection: { host: "127.0.0.1", port: Number(process.env.REDIS_PORT) },
    concurrency: Number(process.env.CONCURRENCY ?? 50),
  },
);
worker.on("error", (error) => console.error(error.message));
worker.on("failed", (job, error) => console.error(`job ${job?.id}: ${error.message}`));
await worker.waitUntilReady();
console.log("ready");

process.once("SIGTERM", async () => {
  await worker.close();
  mailer.close();
});
