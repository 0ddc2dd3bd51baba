// SPDX-License-Identifier: Apache-2.0
// Enumerations of the API (services/gateway/openapi), in the order in which lists offer them; "" is any.

export const CHANNELS = ["email", "sms", "whatsapp", "push", "inapp", "voice", "webhook"];
export const CATEGORIES = ["transactional", "operational", "security", "reminder", "marketing", "system", "academic", "billing", "social", "compliance"];
// Those that say of a notification that it did not arrive: an index finds them in whatever span.
export const UNHAPPY = ["failed", "bounced", "suppressed", "complained", "unknown"];
export const STATUSES = ["", ...UNHAPPY, "queued", "scheduled", "rendering", "sending", "sent", "delivered", "opened", "clicked", "superseded"];

// What a reason code says, in short (services/gateway/why/why_summary.c has the whole sentences). Suppression reasons are among them.
const REASONS = {
  tenant_suspended: "sending is suspended", tenant_policy: "switched off by policy", expired: "its time had run out", hard_bounce: "no such mailbox",
  soft_bounce: "mailbox full or away", complaint: "reported as spam", invalid_address: "no such address", opt_out: "recipient opted out", manual: "by an operator",
  compliance: "for a legal reason", rate_limit: "over the limits", unreadable: "its entry cannot be read", unsubscribed: "recipient unsubscribed", no_consent: "no consent",
  preference: "switched off by the recipient", no_address: "no active address", cancelled: "cancelled", obsolete: "its occasion was cancelled",
  rescheduled: "a newer one takes its place", digest: "part of a digest", erased: "data was erased", rejected: "refused by the vendor", retries_exhausted: "all attempts failed",
  missing_variable: "a value is missing", unknown_template: "its template is gone", invalid_template: "its template is faulty", render_failed: "content could not be made",
  render_limit: "content is too large", window_closed: "no message in 24 hours", dropped: "dropped by an operator", blocked: "refused as unwanted",
  vendor_suppressed: "on the vendor's list", quiet_hours: "quiet hours",
};
export const wordsOf = (code) => (Object.hasOwn(REASONS, code) ? REASONS[code] : undefined);
// Of the entries of a suppression list (SuppressionReason).
export const SUPPRESSION_REASONS = ["manual", "opt_out", "hard_bounce", "complaint", "invalid_address", "compliance", "rate_limit", "unreadable"];
