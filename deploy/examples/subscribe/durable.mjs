// SPDX-License-Identifier: Apache-2.0
// A durable subscriber of a tenant's statuses: it goes on where it stopped, however long it was away (up to the 30 days of STATUS).
//   npm ci && NATS_URL=... NATS_USER=... NATS_PASSWORD=... TENANT=demo node durable.mjs [COUNT]
// Prints a line "STATUS NOTIFICATION EVENT" for each; ends after COUNT. The user comes from `stentor subscriber create`.
import { AckPolicy, connect } from "nats";

const count = Number(process.argv[2] ?? Infinity);
const user = process.env.NATS_USER ?? "stentor-subscriber";
const tenant = process.env.TENANT ?? "demo";
const durable = process.env.CONSUMER ?? `${user}-0`; // a subscriber has the names USER and USER-0 to USER-7
const nats = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222", user, pass: process.env.NATS_PASSWORD });

// Made once and there from then on: to say the same again changes nothing.
const manager = await nats.jetstreamManager({ domain: "stentor" });
await manager.consumers.add("STATUS", {
  name: durable,
  durable_name: durable,
  filter_subject: `ntf.status.${tenant}.>`,
  ack_policy: AckPolicy.Explicit,
});
const consumer = await nats.jetstream({ domain: "stentor" }).consumers.get("STATUS", durable);

let seen = 0;
const messages = await consumer.consume({ max_messages: 100 });
for await (const message of messages) {
  const [, , status] = message.headers.get("ce-type").split("."); // stentor.notification.<status>.v1
  // An event may come twice, with the same id: with a database, make the id a unique key next to what is written.
  console.log(status, message.headers.get("ce-subject"), message.headers.get("ce-id"));
  // After the work: what is not acknowledged within 30 s comes again. The server has seen the ack before the program ends.
  await message.ackAck();
  if (++seen >= count) break;
}
await nats.close();
