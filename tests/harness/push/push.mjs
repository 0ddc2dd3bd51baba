// SPDX-License-Identifier: Apache-2.0
// Doubles of APNs, FCM with Google's token endpoint, and a browser's push service, on one port over HTTP/2 and TLS. Tokens are checked by jose,
// bodies decrypted by http_ece. The configuration is JSON on the first line of standard input; "stats" prints what was taken and refused,
// "revoke" ends the access tokens of FCM.
// node push.mjs PORT CHAIN KEY
import { createSecureServer } from "node:http2";
import { createPublicKey, createECDH, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { jwtVerify, importJWK } from "jose";
import ece from "http_ece";

const [port, chain, key] = process.argv.slice(2);
const SCOPE = "https://www.googleapis.com/auth/firebase.messaging";
const seen = { apns: [], fcm: [], webpush: [], grants: 0, refused: [] };
const issued = new Set();
let config;

const refuse = (what) => { seen.refused.push(what); throw new Error(what); };
const check = (holds, what) => holds || refuse(what);

async function apns(headers, body) {
  const token = headers[":path"].slice("/3/device/".length);
  const [scheme, jwt] = (headers.authorization || "").split(" ");
  check(scheme === "bearer", "scheme");
  const { payload, protectedHeader } = await jwtVerify(jwt, createPublicKey(config.apns_key), { algorithms: ["ES256"], issuer: "TEAM123456", maxTokenAge: "60m" });
  check(protectedHeader.kid === "KEY1234567" && Object.keys(payload).sort().join() === "iat,iss", "claims");
  check(headers["apns-topic"] === "com.example.App", "apns-topic");
  check(["alert", "background"].includes(headers["apns-push-type"]), "apns-push-type");
  check(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(headers["apns-id"]), "apns-id");
  check(Buffer.byteLength(headers["apns-collapse-id"]) <= 64 && body.length <= 4096, "size");
  if (config.gone.includes(token)) return [410, {}, JSON.stringify({ reason: "Unregistered", timestamp: Date.now() })];
  seen.apns.push({ token, collapse: headers["apns-collapse-id"], payload: JSON.parse(body), jwt });
  return [200, { "apns-id": headers["apns-id"] }, ""];
}

async function grant(headers, body) {
  check(headers["content-type"] === "application/x-www-form-urlencoded", "content-type");
  const form = new URLSearchParams(body.toString());
  check(form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer", "grant_type");
  const { payload } = await jwtVerify(form.get("assertion"), createPublicKey(config.fcm_key),
    { algorithms: ["RS256"], issuer: "push@acme.test", audience: config.token_uri, typ: "JWT", maxTokenAge: "60m" });
  check(payload.scope === SCOPE && payload.exp - payload.iat === 3600, "claims");
  const token = randomUUID();
  issued.add(token);
  seen.grants += 1;
  return [200, { "content-type": "application/json" }, JSON.stringify({ access_token: token, expires_in: 3599, token_type: "Bearer" })];
}

async function fcm(headers, body) {
  if (!issued.has((headers.authorization || "").replace(/^Bearer /, ""))) {
    return [401, {}, JSON.stringify({ error: { code: 401, message: "bad token", status: "UNAUTHENTICATED" } })];
  }
  const { message } = JSON.parse(body);
  check(Object.values(message.data).every((value) => typeof value === "string"), "data");
  if (config.gone.includes(message.token)) {
    const details = [{ "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", errorCode: "UNREGISTERED" }];
    return [404, {}, JSON.stringify({ error: { code: 404, message: "gone", status: "NOT_FOUND", details } })];
  }
  seen.fcm.push(message);
  return [200, {}, JSON.stringify({ name: `projects/acme/messages/${seen.fcm.length}` })];
}

async function webpush(headers, body) {
  const [, jwt, k] = /^vapid t=([^,]+), k=(.+)$/.exec(headers.authorization);
  const point = Buffer.from(k, "base64url");
  const jwk = { kty: "EC", crv: "P-256", x: point.subarray(1, 33).toString("base64url"), y: point.subarray(33).toString("base64url") };
  const origin = `https://${headers[":authority"]}`;
  const { payload } = await jwtVerify(jwt, await importJWK(jwk, "ES256"), { algorithms: ["ES256"], audience: origin, subject: "mailto:push@acme.test" });
  check(payload.exp * 1000 - Date.now() <= 24 * 3600 * 1000, "exp");
  check(k === config.vapid_public && headers.ttl !== undefined && headers["content-encoding"] === "aes128gcm", "headers");
  check(/^[A-Za-z0-9_-]{1,32}$/.test(headers.topic), "topic");
  if (headers[":path"].endsWith("/gone")) return [410, {}, ""];
  const own = createECDH("prime256v1");
  own.setPrivateKey(Buffer.from(config.browser_private, "base64url"));
  const plain = ece.decrypt(body, { version: "aes128gcm", privateKey: own, authSecret: config.browser_auth });
  seen.webpush.push({ topic: headers.topic, urgency: headers.urgency, message: JSON.parse(plain) });
  return [201, { location: `${origin}/m/${seen.webpush.length}` }, ""];
}

const route = (path) => (path.startsWith("/3/device/") ? apns : path === "/token" ? grant : path.startsWith("/v1/projects/") ? fcm : webpush);
const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(chain) });
server.on("stream", (stream, headers) => {
  const pieces = [];
  stream.on("error", () => {});
  stream.on("data", (piece) => pieces.push(piece));
  stream.on("end", async () => {
    let status = 400, more = {}, text = "";
    try {
      [status, more, text] = await route(headers[":path"])(headers, Buffer.concat(pieces));
    } catch (error) {
      seen.refused.push(String(error));
    }
    stream.respond({ ":status": status, ...more });
    stream.end(text);
  });
});
createInterface({ input: process.stdin }).on("line", (line) => {
  if (line === "stats") {
    console.log(JSON.stringify(seen));
  } else if (line === "revoke") {
    issued.clear();
    console.log("");
  } else {
    config = JSON.parse(line);
    server.listen(Number(port), "127.0.0.1", () => console.log("ready"));
  }
}).on("close", () => process.exit(0));
