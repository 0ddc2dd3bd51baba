// SPDX-License-Identifier: Apache-2.0
// A client whose types were made from the API's document: tests/integration/api/test_openapi.py compiles and runs it.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/api.js";

declare const process: { env: Record<string, string | undefined> };

const client = createClient<paths>({
  baseUrl: process.env.API ?? "",
  headers: { Authorization: `Bearer ${process.env.KEY}` },
});

const body: components["schemas"]["NotificationRequest"] = { to: "tess@example.com", template: "welcome", variables: { name: "Tess" } };
const sent = await client.POST("/v1/notifications", { body, params: { header: { "Idempotency-Key": "typed-1" } } });
if (sent.error || !("id" in sent.data)) {
  throw new Error(sent.error?.detail ?? "an array for one notification");
}
const read = await client.GET("/v1/notifications/{id}", { params: { path: { id: sent.data.id } } });
if (read.error) {
  throw new Error(read.error.detail);
}
const status: components["schemas"]["NotificationStatus"] = read.data.status;
const refused = await client.POST("/v1/notifications", { body: { template: "welcome" } });
console.log(JSON.stringify({ id: read.data.id, status, refused: refused.error?.type }));
