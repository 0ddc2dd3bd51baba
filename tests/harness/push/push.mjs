// SPDX-License-Identifier: Apache-2.0
// Doubles of APNs, FCM with Google's token endpoint, and a browser's push service, on one port over TLS, HTTP/2 and HTTP/1.1 (APNs speaks HTTP/2
// alone). Tokens are checked by jose, bodies decrypted by http_ece. The configuration is JSON on the first line of standard input, then commands:
// "stats" prints what was taken and refused, "revoke" ends the access tokens of FCM, "deny" and "allow" the grants of new ones, "goaway N": each
// connection says GOAWAY behind N requests and does nothing with later ones; {"say": ADDRESS, "status", "headers", "body", "times", "taken"}: the
// answer to an address (a token, the path of an endpoint), as often; without a status it never comes. taken: the push is taken before.
// node push.mjs PORT CHAIN KEY
import { createSecureServer, constants } from "node:http2";
import { createPublicKey, createECDH, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { jwtVerify, importJWK } from "jose";
import ece from "http_ece";

const [port, chain, key] = process.argv.slice(2);
const SCOPE = "https://www.googleapis.com/auth/firebase.messaging";
const seen = { apns: [], fcm: [], webpush: [], grants: 0, refused: [], connections: 0, together: 0, before_first: 0, goaways: 0, left: 0 };
const issued = new Set();
const said = new Map();
let config, goawayAfter = 0, denied = false;

const refuse = (what) => { seen.refused.push(what); throw new Error(what); };
const check = (holds, what) => holds || refuse(what);
const json = (value) => JSON.stringify(value);

// The answer that was ordered for this address; undefined: none.
function saying(address) {
  const found = said.get(address);
  if (found !== undefined && --found.times === 0) said.delete(address);
  return found;
}

// `take` writes down that the push is there.
function answer(address, take, good) {
  const order = saying(address);
  if (order === undefined || order.taken) take();
  if (order === undefined) return good;
  return order.status === undefined ? null : [order.status, order.headers || {}, order.body || ""];
}

async function apns(headers, body, own) {
  check(own !== null, "APNs over HTTP/1.1");
  const token = headers[":path"].slice("/3/device/".length);
  const [scheme, jwt] = (headers.authorization || "").split(" ");
  check(scheme === "bearer", "scheme");
  const { payload, protectedHeader } = await jwtVerify(jwt, createPublicKey(config.apns_key), { algorithms: ["ES256"], issuer: "TEAM123456", maxTokenAge: "60m" });
  check(protectedHeader.kid === "KEY1234567" && Object.keys(payload).sort().join() === "iat,iss", "claims");
  check(headers["apns-topic"] === "com.example.App", "apns-topic");
  check(["alert", "background"].includes(headers["apns-push-type"]), "apns-push-type");
  check(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(headers["apns-id"]), "apns-id");
  check(Buffer.byteLength(headers["apns-collapse-id"]) <= 64 && body.length <= 4096, "size");
  if (config.gone.includes(token)) return [410, {}, json({ reason: "Unregistered", timestamp: Date.now() })];
  const push = { token, collapse: headers["apns-collapse-id"], priority: headers["apns-priority"], payload: JSON.parse(body), jwt };
  return answer(token, () => seen.apns.push(push), [200, { "apns-id": headers["apns-id"] }, ""]);
}

async function grant(headers, body) {
  check(headers["content-type"] === "application/x-www-form-urlencoded", "content-type");
  const form = new URLSearchParams(body.toString());
  check(form.get("grant_type") === "urn:ietf:params:oauth:grant-type:jwt-bearer", "grant_type");
  const { payload } = await jwtVerify(form.get("assertion"), createPublicKey(config.fcm_key),
    { algorithms: ["RS256"], issuer: "push@acme.test", audience: config.token_uri, typ: "JWT", maxTokenAge: "60m" });
  check(payload.scope === SCOPE && payload.exp - payload.iat === 3600, "claims");
  if (denied) return [400, {}, json({ error: "invalid_grant", error_description: "Invalid JWT Signature." })];
  const token = randomUUID();
  issued.add(token);
  seen.grants += 1;
  return [200, { "content-type": "application/json" }, json({ access_token: token, expires_in: 3599, token_type: "Bearer" })];
}

async function fcm(headers, body) {
  if (!issued.has((headers.authorization || "").replace(/^Bearer /, ""))) {
    return [401, {}, json({ error: { code: 401, message: "bad token", status: "UNAUTHENTICATED" } })];
  }
  const { message, validate_only } = JSON.parse(body);
  if (validate_only) return [200, {}, json({ name: "projects/acme/messages/fake_message_id" })];
  check(Object.values(message.data).every((value) => typeof value === "string"), "data");
  if (config.gone.includes(message.token)) {
    const details = [{ "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", errorCode: "UNREGISTERED" }];
    return [404, {}, json({ error: { code: 404, message: "gone", status: "NOT_FOUND", details } })];
  }
  return answer(message.token, () => seen.fcm.push(message), [200, {}, json({ name: `projects/acme/messages/${seen.fcm.length + 1}` })]);
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
  const push = { topic: headers.topic, urgency: headers.urgency, message: JSON.parse(plain), path: headers[":path"] };
  return answer(headers[":path"], () => seen.webpush.push(push), [201, { location: `${origin}/m/${seen.webpush.length + 1}` }, ""]);
}

// Behind the whole request. false: the connection has said GOAWAY, and this request is above the last that counts.
function counts(stream, own) {
  if (own.last > 0 && stream.id > own.last) {
    seen.left += 1;
    return false;
  }
  own.highest = Math.max(own.highest, stream.id);
  own.requests += 1;
  if (goawayAfter > 0 && own.requests >= goawayAfter && own.last === 0) {
    own.last = own.highest;
    seen.goaways += 1;
    stream.session.goaway(constants.NGHTTP2_NO_ERROR, own.last, Buffer.from(json({ reason: "Shutdown" })));
  }
  return true;
}

const route = (path) => (path.startsWith("/3/device/") ? apns : path === "/token" ? grant : path.startsWith("/v1/projects/") ? fcm : webpush);
const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(chain), allowHTTP1: true, streamResetBurst: 100000, streamResetRate: 100000 });
server.on("session", (session) => {
  session.own = { open: 0, answered: 0, requests: 0, highest: 0, last: 0 };
  seen.connections += 1;
  session.on("error", () => {});
});
server.on("request", (request, response) => {
  const pieces = [];
  const own = request.httpVersionMajor === 2 ? request.stream.session.own : null;
  const headers = own === null ? { ...request.headers, ":path": request.url, ":authority": request.headers.host } : request.headers;
  if (own !== null) {
    own.open += 1;
    seen.together = Math.max(seen.together, own.open);
    if (own.answered === 0) seen.before_first = Math.max(seen.before_first, own.open);
    request.stream.on("close", () => { own.open -= 1; });
    request.stream.on("error", () => {});
  }
  request.on("error", () => {});
  request.on("data", (piece) => pieces.push(piece));
  request.on("end", async () => {
    let made = [400, {}, ""];
    if (own !== null && (request.stream.session === undefined || !counts(request.stream, own))) return;
    try {
      made = await route(headers[":path"])(headers, Buffer.concat(pieces), own);
    } catch (error) {
      seen.refused.push(String(error));
    }
    if (made === null || response.destroyed || (own !== null && request.stream.destroyed)) return;
    if (own !== null) own.answered += 1;
    response.writeHead(made[0], made[1]);
    response.end(made[2]);
  });
});
server.on("sessionError", () => {});
server.on("tlsClientError", () => {});

const commands = {
  stats: () => json(seen),
  revoke: () => { issued.clear(); return ""; },
  deny: () => { denied = true; return ""; },
  allow: () => { denied = false; return ""; },
  goaway: (count) => { goawayAfter = Number(count); return ""; },
  say: (order) => { said.set(order.say, { times: 1, ...order }); return ""; },
};
createInterface({ input: process.stdin }).on("line", (line) => {
  if (config === undefined) {
    config = JSON.parse(line);
    server.listen(Number(port), "127.0.0.1", 1024, () => console.log("ready"));
  } else if (line.startsWith("{")) {
    console.log(commands.say(JSON.parse(line)));
  } else {
    const [word, ...rest] = line.split(" ");
    console.log(commands[word](...rest));
  }
}).on("close", () => process.exit(0));
