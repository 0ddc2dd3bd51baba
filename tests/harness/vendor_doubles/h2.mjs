// SPDX-License-Identifier: Apache-2.0
// A server of HTTP/2 over TLS that does what the path says, and knows which requests it took whole ("id=NNN;" begins their bodies). On standard
// input "stats" prints what it saw, "forget" drops it. node h2.mjs PORT CHAIN KEY MAX_STREAMS
import { createSecureServer, constants } from "node:http2";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [port, chain, key, maxStreams] = process.argv.slice(2);
const { NGHTTP2_REFUSED_STREAM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;
let seen;
const forget = () => { seen = { taken: [], connections: 0, together: 0, before_first: 0, refused: 0, cut: 0, headers: null, path: "" }; };
forget();

const server = createSecureServer({
  key: readFileSync(key), cert: readFileSync(chain), allowHTTP1: false,
  settings: { maxConcurrentStreams: Number(maxStreams) }, streamResetBurst: 100000, streamResetRate: 100000,
});

server.on("session", (session) => {
  session.own = { open: 0, answered: 0, requests: 0, highest: 0, last: 0 };
  seen.connections += 1;
  session.on("error", () => {});
});

const answer = (stream, status, body) => {
  if (stream.destroyed || stream.closed) return;
  stream.session.own.answered += 1;
  stream.respond({ ":status": status, "content-type": "text/plain", "x-double": "h2" });
  stream.end(body);
};

// Behind the whole body.
const act = (stream, path, id) => {
  const own = stream.session.own;
  // The last stream of a GOAWAY is the highest that was taken.
  const goaway = (code, reason) => {
    own.last = Math.max(own.highest, stream.id);
    stream.session.goaway(code, own.last, Buffer.from(JSON.stringify({ reason })));
  };
  const at = path.split("/")[1];
  if (at === "refuse-some" && id % 3 === 0) {
    seen.refused += 1;
    stream.close(NGHTTP2_REFUSED_STREAM);
    return;
  }
  if (own.last > 0 && stream.id > own.last) return; // behind a GOAWAY: nothing is done with it
  if (at === "goaway" && own.requests >= 300 && own.last === 0) {
    goaway(NGHTTP2_NO_ERROR, "Shutdown");
  }
  own.highest = Math.max(own.highest, stream.id);
  seen.taken.push(id);
  if (at === "goaway-cut" && own.requests >= 30) {
    goaway(NGHTTP2_INTERNAL_ERROR, "InternalError");
    setImmediate(() => stream.session && stream.session.destroy());
    return;
  }
  if (at === "reset") return stream.close(NGHTTP2_INTERNAL_ERROR);
  if (at === "hang") return undefined;
  if (at === "cut") return stream.session.destroy();
  if (at === "one-in-50" && Math.random() < 0.02) {
    seen.cut += 1;
    if (Math.random() < 0.5) answer(stream, 200, "ok");
    setTimeout(() => stream.session && stream.session.destroy(), Math.random() * 3);
    return undefined;
  }
  if (at === "slow") return setTimeout(() => answer(stream, 200, "slow"), 200);
  if (at === "big") return answer(stream, 200, Buffer.alloc(10_000_000, "y"));
  if (at === "long-head") {
    stream.respond({ ":status": 200, "x-long": "z".repeat(20000) });
    return stream.end("ok");
  }
  if (at === "1xx") stream.additionalHeaders({ ":status": 103, link: "</a>" });
  if (at === "half") {
    stream.respond({ ":status": 200 });
    stream.write("half");
    return setTimeout(() => stream.session && stream.session.destroy(), 20);
  }
  if (at === "drip") {
    stream.respond({ ":status": 200 });
    const drip = setInterval(() => (stream.destroyed ? clearInterval(drip) : stream.write("d")), 50);
    return undefined;
  }
  if (at === "trailers") {
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-trailer": "t" }));
    return stream.end("ok");
  }
  const status = at === "status" ? Number(path.split("/")[2]) : 200;
  return answer(stream, status, "ok");
};

server.on("stream", (stream, headers) => {
  const own = stream.session.own;
  const pieces = [];
  own.open += 1;
  own.requests += 1;
  seen.together = Math.max(seen.together, own.open);
  if (own.answered === 0) seen.before_first = Math.max(seen.before_first, own.open);
  seen.headers = headers;
  stream.on("error", () => {});
  stream.on("close", () => { own.open -= 1; });
  if (headers[":path"].startsWith("/early")) return answer(stream, 413, "too large");
  stream.on("data", (piece) => pieces.push(piece));
  stream.on("end", () => {
    const body = Buffer.concat(pieces);
    if (body.length === Number(headers["content-length"])) {
      const id = /^id=(\d+);/.exec(body.subarray(0, 32).toString("latin1"));
      act(stream, headers[":path"], id === null ? -1 : Number(id[1]));
    }
  });
  return undefined;
});

server.on("sessionError", () => {});
server.on("tlsClientError", () => {});
server.listen(Number(port), "127.0.0.1", 1024, () => console.log("ready"));
createInterface({ input: process.stdin }).on("line", (line) => {
  if (line === "stats") console.log(JSON.stringify(seen));
  if (line === "forget") { forget(); console.log("{}"); }
}).on("close", () => process.exit(0));
