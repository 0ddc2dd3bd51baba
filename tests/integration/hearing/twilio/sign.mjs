// SPDX-License-Identifier: Apache-2.0
// node sign.mjs TOKEN URL < form as JSON: what Twilio's own library expects in X-Twilio-Signature, and that it takes it.
import { readFileSync } from "node:fs";
import webhooks from "twilio/lib/webhooks/webhooks.js";

const [token, url] = process.argv.slice(2);
const form = JSON.parse(readFileSync(0, "utf8"));
const signature = webhooks.getExpectedTwilioSignature(token, url, form);
console.log(JSON.stringify({ signature, valid: webhooks.validateRequest(token, signature, url, form) }));
