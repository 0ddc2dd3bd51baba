// SPDX-License-Identifier: Apache-2.0
// Sends one notification and waits until it is sent or has ended; Node.js 18 or later, nothing to install.
//   STENTOR_API_URL=http://127.0.0.1:8080 STENTOR_API_KEY=stn_... node send.mjs ORDER ADDRESS NAME
// Prints "ID STATUS"; exit code 0 when it was sent, 1 when it ended otherwise or was refused, 2 when the API could not be reached.
const API = process.env.STENTOR_API_URL ?? "http://127.0.0.1:8080";
const KEY = process.env.STENTOR_API_KEY;
const TRIES = 8;
const WAIT_MS = 60_000;
const SENT = new Set(["sent", "delivered", "opened", "clicked"]);
const ENDS = new Set(["suppressed", "superseded", "failed", "bounced", "complained"]);
const AGAIN = new Set([408, 429, 500, 502, 503, 504]);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Repeats what may succeed later: no answer, 408, 429 and 5xx. A repeated POST needs the header Idempotency-Key: the first may have been
// accepted although its answer was lost.
async function call(method, path, { body, headers } = {}) {
  for (let number = 0; number < TRIES; number++) {
    let wait = Math.min(30_000, 200 * 2 ** number) * (0.5 + Math.random() / 2); // so that clients do not come all at once
    let why;
    try {
      const response = await fetch(API + path, {
        method,
        headers: { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json", ...headers },
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(30_000),
      });
      const answer = await response.json();
      if (!AGAIN.has(response.status)) return { status: response.status, location: response.headers.get("location"), answer };
      why = `${response.status} ${answer.detail ?? ""}`;
      wait = Math.max(wait, 1000 * (Number(response.headers.get("retry-after")) || 0)); // a date is no number
    } catch (error) {
      why = `${error.message} ${error.cause?.code ?? ""}`;
    }
    console.error(`${method} ${path}: ${why}; again in ${(wait / 1000).toFixed(1)} s`);
    await sleep(wait);
  }
  process.exit(2);
}

const [order, address, name] = process.argv.slice(2);
// The key names what must happen once, and is the same after a restart of this program: the order, not the time or a random number.
let { status, location, answer } = await call("POST", "/v1/notifications", {
  headers: { "Idempotency-Key": `welcome/${order}` },
  body: { to: address, template: "welcome", variables: { name }, correlation_id: order },
});
if (status !== 202) {
  console.error(answer.field ?? "", answer.detail ?? answer);
  process.exit(1);
}
const until = Date.now() + WAIT_MS;
while (!SENT.has(answer.status) && !ENDS.has(answer.status) && Date.now() < until) {
  await sleep(200);
  ({ status, answer } = await call("GET", location));
  if (status !== 200) {
    console.error(answer.detail ?? answer);
    process.exit(1);
  }
}
console.log(answer.id, answer.status, answer.reason_code ?? "");
process.exitCode = SENT.has(answer.status) ? 0 : 1;
