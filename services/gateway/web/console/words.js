// SPDX-License-Identifier: Apache-2.0
// Enumerations of the API (services/gateway/openapi), in the order in which lists offer them; "" is any.

export const CHANNELS = ["email", "sms", "whatsapp", "push", "inapp", "voice", "webhook"];
export const CATEGORIES = ["transactional", "operational", "security", "reminder", "marketing", "system", "academic", "billing", "social", "compliance"];
// Those that say of a notification that it did not arrive: an index finds them in whatever span.
export const UNHAPPY = ["failed", "bounced", "suppressed", "complained", "unknown"];
export const STATUSES = ["", ...UNHAPPY, "queued", "scheduled", "rendering", "sending", "sent", "delivered", "opened", "clicked", "superseded"];
