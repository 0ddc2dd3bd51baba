// SPDX-License-Identifier: Apache-2.0
// Requests of OTLP (base64, one a line) as JSON, by OpenTelemetry's own code.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const root = createRequire(import.meta.url)("@opentelemetry/otlp-transformer/build/src/generated/root.js");
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

for await (const line of createInterface({ input: process.stdin })) {
  const message = Request.decode(Buffer.from(line, "base64"));
  const wrong = Request.verify(message);
  if (wrong) throw new Error(wrong);
  const read = Request.toObject(message, { longs: String, enums: String, bytes: (bytes) => bytes });
  console.log(JSON.stringify(read, (key, value) => (value?.type === "Buffer" ? Buffer.from(value.data).toString("hex") : value)));
}
