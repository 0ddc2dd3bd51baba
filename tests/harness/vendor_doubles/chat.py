# SPDX-License-Identifier: Apache-2.0
"""Chat services with incoming webhooks: what they ask of a message and how they answer. `gone` of a double holds the paths of URLs that are no
more; `address(name)` is an incoming URL of the service, whose path reaches the double by the credential's base_url."""
import json
import re
import secrets

from tests.harness.vendor_doubles.wire import Mail, Refused, json_of, known, need

ORIGINS = {"slack": "https://hooks.slack.com", "discord": "https://discord.com", "teams": "https://prod-07.westus.logic.azure.com:443"}


def address(vendor, name):
    """A new URL; `name` is a word in its path."""
    token = secrets.token_hex(12)
    return ORIGINS[vendor] + {"slack": f"/services/T{name}/B01/{token}", "discord": f"/api/webhooks/{abs(hash(name)) % 10**17}/{token}",
                              "teams": f"/workflows/{name}/triggers/manual/paths/invoke?api-version=2016-06-01&sig={token}"}[vendor]


def slack(double, request):
    def refused(text, status=400):
        return Refused(status, text)
    need(request.method == "POST" and re.match(r"^/services/T\w+/B\w+/\w+$", request.path), lambda text: refused("no_service", 404), "path")
    if request.path in double.gone:
        raise refused("no_service", 404)
    message = json_of(request, lambda text: refused("invalid_payload"))
    known(message, ("text", "blocks"), lambda text: refused("invalid_payload"))
    need(message.get("text") or message.get("blocks"), lambda text: refused("no_text"), "empty")
    return Mail("slack", "", to=[request.path], text=message.get("text", ""), headers=message), 200, "ok", {}


def discord_error(status, code, text):
    return Refused(status, json.dumps({"message": text, "code": code}))


def discord(double, request):
    path, _, query = request.path.partition("?")
    need(request.method == "POST" and re.match(r"^/api/webhooks/\d+/[\w-]+$", path), lambda text: discord_error(404, 0, text), "404: Not Found")
    if path in double.gone:
        raise discord_error(404, 10015, "Unknown Webhook")
    message = json_of(request, lambda text: discord_error(400, 50109, "The request body contains invalid JSON."))
    known(message, ("content", "embeds", "allowed_mentions"), lambda text: discord_error(400, 50035, "Invalid Form Body"))
    need(message.get("content") or message.get("embeds"), lambda text: discord_error(400, 50006, "Cannot send an empty message"), "empty")
    need(len(message.get("content", "")) <= 2000 and len(message.get("embeds", [])) <= 10, lambda text: discord_error(400, 50035, "Invalid Form Body"), "length")
    mail = Mail("discord", str(10**18 + secrets.randbelow(10**17)), to=[path], text=message.get("content", ""), headers=message)
    if "wait=true" not in query.split("&"):
        return mail, 204, "", {}
    return mail, 200, json.dumps({"id": mail.id, "type": 0, "content": mail.text, "channel_id": "1"}), {}


def teams(double, request):
    def refused(status, code):
        return Refused(status, json.dumps({"error": {"code": code, "message": "The workflow says no."}}))
    path, _, query = request.path.partition("?")
    need(request.method == "POST" and path.startswith("/workflows/"), lambda text: refused(404, "WorkflowNotFound"), "path")
    need("sig=" in query, lambda text: refused(401, "DirectApiAuthorizationRequired"), "signature")
    if request.path in double.gone:
        raise refused(404, "WorkflowNotFound")
    need(len(request.body) <= 28 * 1024, lambda text: refused(413, "RequestEntityTooLarge"), "size")
    message = json_of(request, lambda text: refused(400, "InvalidJson"))
    need(message.get("type") == "message" and len(message["attachments"]) == 1, lambda text: refused(400, "TriggerInputSchemaMismatch"), "shape")
    attachment = message["attachments"][0]
    card = attachment["content"]
    need(attachment["contentType"] == "application/vnd.microsoft.card.adaptive" and card["type"] == "AdaptiveCard",
         lambda text: refused(400, "TriggerInputSchemaMismatch"), "card")
    text = "\n".join(run["text"] for block in card.get("body", []) if block["type"] == "RichTextBlock" for run in block["inlines"])
    return Mail("teams", "", to=[request.path], text=text, headers=card), 202, "", {}


def refusal(double, name):
    """Status, body and headers of a Fault."""
    wait = double.retry_after
    status = {"UNAUTHORIZED": 401, "THROTTLE": 429, "ERROR": 500, "UNAVAILABLE": 503}[name]
    if name == "THROTTLE":
        body = {"message": "You are being rate limited.", "retry_after": wait - 0.5, "global": False} if double.vendor == "discord" else "rate_limited"
        return status, body if isinstance(body, str) else json.dumps(body), {"Retry-After": wait}
    return status, "", {}


VENDORS = {"slack": slack, "discord": discord, "teams": teams}
