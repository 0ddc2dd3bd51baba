// SPDX-License-Identifier: Apache-2.0
// Prints a tenant's status events, decoded, as another service would consume them: a public NATS client (npm nats),
// the protocol's own .proto files (npm protobufjs), no code of Stentor.
//   npm ci && NATS_URL=... NATS_USER=stentor-subscriber NATS_PASSWORD=... TENANT=demo node subscribe.mjs [--count N]
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "nats";
import protobuf from "protobufjs";

const here = dirname(fileURLToPath(import.meta.url));
const proto = join(here, "..", "..", "..", "proto");
const root = new protobuf.Root();
root.resolvePath = (_, target) => join(proto, target);
await root.load("stentor/v1/status.proto");
const NotificationStatus = root.lookupType("stentor.v1.NotificationStatus");

const count = process.argv[2] === "--count" ? Number(process.argv[3]) : Infinity;
const user = process.env.NATS_USER ?? "stentor-subscriber";
const tenant = process.env.TENANT ?? "demo";
const nats = await connect({
  servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222",
  user,
  pass: process.env.NATS_PASSWORD,
  inboxPrefix: `_INBOX.${user}`, // each user may read only its own replies
});

// The live copy of STATUS: what happens from now on. For what happened before, and for a read that survives
// disconnections without a gap, see durable.mjs.
const subscription = nats.subscribe(`live.status.${tenant}.>`);
await nats.flush();
console.error(`listening on live.status.${tenant}.>`);

// An event may come twice: after a crash a stage publishes again what it may have published before, with the same id.
// Here the last ids are remembered; a consumer with a database makes the id a unique key beside what it writes.
const KNOWN_MAX = 100_000;
const known = new Set();
function isRepeat(id) {
  if (known.has(id)) return true;
  known.add(id);
  if (known.size > KNOWN_MAX) known.delete(known.values().next().value); // the oldest: a Set keeps its order
  return false;
}

let seen = 0;
for await (const message of subscription) {
  const event = NotificationStatus.decode(message.data);
  if (isRepeat(event.meta.eventId)) continue;
  console.log(JSON.stringify(NotificationStatus.toObject(event, { enums: String, longs: Number, bytes: String })));
  if (++seen >= count) break;
}
await nats.close();
