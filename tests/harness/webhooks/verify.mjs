// SPDX-License-Identifier: Apache-2.0
// A line of JSON in, {"secret", "headers", "body"}, a line out: what a receiver with that secret gets from the standardwebhooks package.
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ event: new Webhook(secret).verify(body, headers) }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error.message) }));
  }
}
