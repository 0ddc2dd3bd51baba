// SPDX-License-Identifier: Apache-2.0
// node sign.mjs whsec_... < body: the headers that Svix sends with it, as JSON.
import { readFileSync } from "node:fs";
import { Webhook } from "svix";

const now = new Date();
const id = `msg_${now.getTime()}`;
console.log(JSON.stringify({
  "svix-id": id,
  "svix-timestamp": String(Math.floor(now.getTime() / 1000)),
  "svix-signature": new Webhook(process.argv[2]).sign(id, now, readFileSync(0, "utf8")),
}));
