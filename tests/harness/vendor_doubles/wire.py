# SPDX-License-Identifier: Apache-2.0
"""What each vendor asks of a request and how it answers, from its documents: authorization, required fields, limits."""
import base64
import datetime
import email
import email.policy
import hashlib
import hmac
import json
import re
import urllib.parse
import uuid
from dataclasses import dataclass, field
from email.utils import format_datetime, getaddresses, parseaddr

ADDRESS = re.compile(r"^[^@\s<>\"]+@[^@\s<>\"]+$")
CLOCK_MAX_S = 300


class Refused(Exception):
    """The vendor's answer to a request that it does not take."""

    def __init__(self, status, body, headers=None):
        super().__init__(f"{status}: {body}")
        self.status, self.body, self.headers = status, body, headers or {}


class Answered(Exception):
    """The vendor's answer to a question about the mails that it took."""

    def __init__(self, document):
        super().__init__()
        self.body = json.dumps(document)


@dataclass
class Request:
    method: str
    path: str  # with the query, as it was sent
    headers: dict  # names in lower case
    body: bytes


@dataclass
class Mail:
    vendor: str
    id: str  # the vendor's
    sender: str = ""
    to: list = field(default_factory=list)
    cc: list = field(default_factory=list)
    bcc: list = field(default_factory=list)
    reply_to: str = ""
    subject: str = ""
    html: str = ""
    text: str = ""
    headers: dict = field(default_factory=dict)  # as the sender wrote them beside the others
    tags: dict = field(default_factory=dict)  # metadata that the vendor's callbacks repeat
    attachments: list = field(default_factory=list)  # (name, type, bytes, content id)
    message: object = None  # email.message.EmailMessage, where the whole mail was sent
    delivered: bytes = b""  # of SES: as the recipient gets it
    key: str = ""  # Idempotency-Key
    report_to: str = ""  # the URL for reports about it alone
    made: str = ""  # when it came, as its vendor says it
    request: Request = None

    @property
    def notification(self):
        return self.tags.get("nid") or self.tags.get("notification_id") or ""


def need(condition, refusal, text):
    if not condition:
        raise refusal(text)


def json_of(request, refusal):
    need(request.headers.get("content-type", "").split(";")[0].strip() == "application/json", refusal, "Content-Type is not application/json")
    try:
        document = json.loads(request.body)
    except ValueError:
        raise refusal("the body is not JSON") from None
    need(isinstance(document, dict), refusal, "the body is not an object")
    return document


def known(document, names, refusal, where="the body"):
    """No vendor ignores a misspelled field to the sender's good: each name must be one of the documents."""
    other = sorted(set(document) - set(names))
    need(not other, refusal, f"{where} has unknown fields: {', '.join(other)}")


def address_of(text, refusal, name):
    address = parseaddr(text)[1] if isinstance(text, str) else ""
    need(ADDRESS.match(address), refusal, f"{name} is not a valid address: {text!r}")
    return address


def addresses_of(text, refusal, name):
    found = [address for _, address in getaddresses([text] if isinstance(text, str) else text)] if text else []
    for address in found:
        need(ADDRESS.match(address), refusal, f"{name} is not a valid address: {address!r}")
    return found


def bytes_of(text, refusal, name):
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, TypeError):
        raise refusal(f"{name} is not base64") from None


def mime_of(data, refusal):
    """The whole mail by Python's parser: CRLF at every line's end, no defect anywhere, the headers that RFC 5322 asks for once."""
    need(b"\r\n\r\n" in data and not re.search(rb"(?<!\r)\n|\r(?!\n)", data), refusal, "the message has a line that does not end with CRLF")
    need(max(map(len, data.split(b"\r\n"))) <= 998, refusal, "the message has a line of more than 998 bytes")
    message = email.message_from_bytes(data, policy=email.policy.default)
    defects = [defect for part in message.walk() for defect in part.defects]
    need(not defects, refusal, f"the message has defects: {defects}")
    for name in ("From", "Date", "Message-ID", "Subject", "MIME-Version"):
        need(len(message.get_all(name, [])) == 1, refusal, f"the message has no {name}, or two")
    need("Bcc" not in message, refusal, "the message has Bcc")
    return message


def from_mime(mail, message):
    mail.message = message
    mail.sender = parseaddr(str(message["From"]))[1]
    mail.subject = str(message["Subject"])
    mail.reply_to = parseaddr(str(message["Reply-To"] or ""))[1]
    mail.headers = {name: str(value) for name, value in message.items()}
    for part in message.walk():
        if part.is_multipart():
            continue
        if part.get_content_disposition() == "attachment" or part.get_filename() or part["Content-ID"]:
            mail.attachments.append((part.get_filename(), part.get_content_type(), part.get_payload(decode=True), str(part["Content-ID"] or "").strip("<>")))
        elif part.get_content_type() == "text/html":
            mail.html = part.get_content()
        elif part.get_content_type() == "text/plain":
            mail.text = part.get_content()


# ---- Postmark ----

def postmark_refusal(code, status=422):
    return lambda text: Refused(status, json.dumps({"ErrorCode": code, "Message": text}))


def postmark_messages(double, query):
    """GET /messages/outbound: the newest first, of those whose metadata has all that is asked for."""
    refused = postmark_refusal(300)
    wanted = dict(urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=True))
    count, offset = int(wanted.pop("count")), int(wanted.pop("offset"))
    need(1 <= count <= 500 and count + offset <= 10_000, refused, "count is 1 to 500, count and offset together at most 10000")
    other = [name for name in wanted if not name.startswith("metadata_")]
    need(not other, refused, f"unknown filters: {other}")
    found = [mail for mail in reversed(double.mails) if all(mail.tags.get(name.removeprefix("metadata_")) == value for name, value in wanted.items())]
    return Answered({"TotalCount": len(found), "Messages": [
        {"MessageID": mail.id, "MessageStream": "outbound", "To": [{"Email": address, "Name": ""} for address in mail.to], "From": mail.sender,
         "Subject": mail.subject, "Status": "Sent", "Metadata": mail.tags} for mail in found[offset:offset + count]]})


def postmark(double, request):
    refused = postmark_refusal(300)
    path, _, query = request.path.partition("?")
    asks = (request.method, path) == ("GET", "/messages/outbound")
    need(asks or (request.method, request.path) == ("POST", "/email"), postmark_refusal(0, 404), "no such path")
    tests = request.headers.get("x-postmark-server-token") == "POSTMARK_API_TEST" and not asks
    if not tests and request.headers.get("x-postmark-server-token") != double.secret:
        raise Refused(401, json.dumps({"ErrorCode": 10, "Message": "The Server Token you provided in the X-Postmark-Server-Token request header was invalid."}))
    if asks:
        raise postmark_messages(double, query)
    document = json_of(request, postmark_refusal(402))
    known(document, ("From", "To", "Cc", "Bcc", "Subject", "Tag", "HtmlBody", "TextBody", "ReplyTo", "Metadata", "Headers", "TrackOpens",
                     "TrackLinks", "Attachments", "MessageStream"), refused)
    need(document.get("From"), refused, "Invalid 'From' address")
    need(document.get("HtmlBody") or document.get("TextBody"), refused, "Provide either email TextBody or HtmlBody or both.")
    tags = document.get("Metadata", {})
    need(len(tags) <= 10 and all(isinstance(v, str) and len(k) <= 20 and len(v) <= 80 for k, v in tags.items()), refused, "Metadata is too large")
    for header in document.get("Headers", []):
        known(header, ("Name", "Value"), refused, "Headers")
    mail = Mail("postmark", str(uuid.uuid4()), address_of(document["From"], refused, "From"), addresses_of(document.get("To", ""), refused, "To"),
                addresses_of(document.get("Cc", ""), refused, "Cc"), addresses_of(document.get("Bcc", ""), refused, "Bcc"),
                parseaddr(document.get("ReplyTo", ""))[1], document.get("Subject", ""), document.get("HtmlBody", ""), document.get("TextBody", ""),
                {header["Name"]: header["Value"] for header in document.get("Headers", [])}, tags)
    need(mail.to, refused, "Zero recipients specified")
    for one in document.get("Attachments", []):
        known(one, ("Name", "Content", "ContentType", "ContentID"), refused, "Attachments")
        mail.attachments.append((one["Name"], one["ContentType"], bytes_of(one["Content"], refused, "Content"), one.get("ContentID", "").removeprefix("cid:")))
    inactive = [address for address in mail.to if address in double.suppressed]
    need(not inactive, postmark_refusal(406), "You tried to send to recipient(s) that have been marked as inactive. "
         f"Found inactive addresses: {', '.join(inactive)}.")
    bad = [address for address in mail.to if address in double.rejected]
    need(not bad, refused, f"Invalid 'To' address: '{', '.join(bad)}'.")
    if tests:
        double.rehearsed.append(mail)
        raise Answered({"To": document["To"], "SubmittedAt": "2026-11-26T10:00:00.0000000Z", "MessageID": mail.id, "ErrorCode": 0, "Message": "Test job accepted"})
    return mail, 200, json.dumps({"To": document["To"], "SubmittedAt": "2026-11-26T10:00:00.0000000Z", "MessageID": mail.id, "ErrorCode": 0, "Message": "OK"}), {}


# ---- SendGrid ----

def sendgrid_error(status, text, name=None):
    return Refused(status, json.dumps({"errors": [{"message": text, "field": name, "help": None}]}))


def sendgrid_people(items, refused, name):
    found = []
    for at, item in enumerate(items or []):
        known(item, ("email", "name"), refused, name)
        if not ADDRESS.match(item.get("email", "")):
            raise sendgrid_error(400, "Does not contain a valid address.", f"{name}.{at}.email")
        found.append(item["email"])
    return found


def sendgrid(double, request):
    def refused(text):
        return sendgrid_error(400, text)
    need(request.path == "/v3/mail/send", lambda text: sendgrid_error(404, text), "no such path")
    if request.headers.get("authorization") != f"Bearer {double.secret}":
        raise sendgrid_error(401, "The provided authorization grant is invalid, expired, or revoked")
    document = json_of(request, lambda text: sendgrid_error(415 if "Content-Type" in text else 400, text))
    known(document, ("personalizations", "from", "reply_to", "reply_to_list", "subject", "content", "attachments", "headers", "categories", "custom_args",
                     "send_at", "asm", "ip_pool_name", "mail_settings", "tracking_settings"), refused)
    people = document.get("personalizations") or []
    need(len(people) == 1, refused, "The personalizations field is required and must have at least one personalization.")
    one = people[0]
    known(one, ("to", "cc", "bcc", "subject", "headers", "custom_args", "send_at", "from"), refused, "personalizations")
    kinds = [part.get("type") for part in document.get("content", [])]
    need(kinds in (["text/plain"], ["text/html"], ["text/plain", "text/html"]), refused, "text/plain must come before text/html, each once")
    tags = {**document.get("custom_args", {}), **one.get("custom_args", {})}
    need(all(isinstance(value, str) for value in tags.values()), refused, "custom_args must be strings")
    content = {part["type"]: part["value"] for part in document["content"]}
    need(all(content.values()), refused, "The content value must be a string at least one character in length.")
    mail = Mail("sendgrid", base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="), document.get("from", {}).get("email", ""),
                sendgrid_people(one.get("to"), refused, "personalizations.0.to"), sendgrid_people(one.get("cc"), refused, "personalizations.0.cc"),
                sendgrid_people(one.get("bcc"), refused, "personalizations.0.bcc"), document.get("reply_to", {}).get("email", ""),
                one.get("subject") or document.get("subject", ""), content.get("text/html", ""), content.get("text/plain", ""),
                {**document.get("headers", {}), **one.get("headers", {})}, tags)
    need(ADDRESS.match(mail.sender), refused, "The from email does not contain a valid address.")
    need(mail.to and mail.subject, refused, "to and subject are required")
    reserved = {"x-sg-id", "x-sg-eid", "received", "dkim-signature", "content-type", "content-transfer-encoding", "to", "from", "subject", "reply-to", "cc", "bcc"}
    need(not reserved & {name.lower() for name in mail.headers}, refused, "The headers field has a reserved header")
    for part in document.get("attachments", []):
        known(part, ("content", "type", "filename", "disposition", "content_id"), refused, "attachments")
        mail.attachments.append((part["filename"], part.get("type"), bytes_of(part["content"], refused, "content"), part.get("content_id", "")))
    for at, address in enumerate(mail.to):
        if address in double.rejected:
            raise sendgrid_error(400, "Does not contain a valid address.", f"personalizations.0.to.{at}.email")
    if document.get("mail_settings", {}).get("sandbox_mode") == {"enable": True}:
        double.rehearsed.append(mail)
        raise Answered({})
    return mail, 202, "", {"X-Message-Id": mail.id}


# ---- Mailgun ----

def form_of(request, refused):
    """name -> list of (value as bytes, file name): form fields of either encoding, multipart by Python's email parser."""
    kind = request.headers.get("content-type", "")
    fields = {}
    if kind.startswith("application/x-www-form-urlencoded"):
        for name, value in urllib.parse.parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=True):
            fields.setdefault(name, []).append((value.encode(), None, None))
        return fields
    need(kind.startswith("multipart/form-data"), refused, "Content-Type is neither a form nor multipart")
    whole = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + request.body, policy=email.policy.HTTP)
    need(whole.is_multipart() and not whole.defects, refused, f"the multipart body has defects: {whole.defects}")
    boundary = whole.get_boundary().encode()
    pieces = request.body.split(b"\r\n--" + boundary)
    need(request.body.startswith(b"--" + boundary) and pieces[-1].startswith(b"--"), refused, "the multipart body does not begin or end as it must")
    for part, piece in zip(whole.iter_parts(), pieces, strict=False):
        name = part.get_param("name", header="content-disposition")
        need(name, refused, "a part has no name")
        data = piece.split(b"\r\n\r\n", 1)[1]  # to the byte: the parser of mail would change a text's line ends
        fields.setdefault(name, []).append((data, part.get_filename(), part.get_content_type()))
    return fields


def mailgun(double, request):
    def refused(text):
        return Refused(400, json.dumps({"message": text}))
    expected = base64.b64encode(f"api:{double.secret}".encode()).decode()
    if request.headers.get("authorization") != f"Basic {expected}":
        raise Refused(401, "Forbidden", {"Content-Type": "text/plain"})
    path, _, query = request.path.partition("?")
    words = path.split("/")
    leaves = {"GET": ("events",), "POST": ("messages", "messages.mime")}.get(request.method, ())
    need(len(words) == 4 and words[1] == "v3" and words[2] == double.settings["domain"] and words[3] in leaves,
         lambda text: Refused(404, json.dumps({"message": text})), f"Domain not found: {request.path}")
    if words[3] == "events":
        raise mailgun_events(double, query, refused)
    return mailgun_mail(double, request, form_of(request, refused), words[-1], refused)


def mailgun_events(double, query, refused):
    """GET /v3/<domain>/events: the newest first; a message id is without its angle brackets there."""
    wanted = dict(urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=True))
    limit = int(wanted.pop("limit", 100))
    need(limit <= 300, refused, "limit is at most 300")
    need(set(wanted) <= {"event", "message-id"}, refused, f"unknown filters: {sorted(wanted)}")
    accepted = [mail for mail in reversed(double.mails)
                if wanted.get("event", "accepted") == "accepted" and wanted.get("message-id") in (None, mail.id.strip("<>"))]
    return Answered({"items": [
        {"event": "accepted", "recipient": mail.to[0], "user-variables": mail.tags, "message": {"headers": {"message-id": mail.id.strip("<>"), "to": mail.to[0]}}}
        for mail in accepted[:limit]], "paging": {}})


def mailgun_mail(double, request, fields, action, refused):
    def texts(name):
        return [value.decode() for value, _, _ in fields.get(name, [])]
    plain = {"from", "to", "cc", "bcc", "subject", "text", "html", "attachment", "inline", "message"}
    other = [name for name in fields if name not in plain and not re.match(r"^(h|v|o|t):", name)]
    need(not other, refused, f"unknown parameters: {other}")
    mail = Mail("mailgun", "", "", addresses_of(texts("to"), refused, "to"))
    mail.tags = {name[2:]: texts(name)[0] for name in fields if name.startswith("v:")}
    if action == "messages.mime":
        need("message" in fields and fields["message"][0][1], refused, "message is not a file")
        from_mime(mail, mime_of(fields["message"][0][0], refused))
        mail.id = str(mail.message["Message-ID"])
    else:
        need(len(texts("from")) == 1, refused, "from parameter is missing")
        need(texts("text") or texts("html"), refused, "Need at least one of 'text' or 'html' parameters specified")
        mail.sender = address_of(texts("from")[0], refused, "from")
        mail.cc, mail.bcc = addresses_of(texts("cc"), refused, "cc"), addresses_of(texts("bcc"), refused, "bcc")
        mail.subject, mail.html, mail.text = ("".join(texts(name)) for name in ("subject", "html", "text"))
        mail.headers = {name[2:]: texts(name)[0] for name in fields if name.startswith("h:")}
        mail.reply_to = parseaddr(mail.headers.get("Reply-To", ""))[1]
        mail.attachments = [(name, kind, data, name if where == "inline" else "") for where in ("attachment", "inline")
                            for data, name, kind in fields.get(where, [])]
        mail.id = mail.headers.get("Message-Id") or f"<{uuid.uuid4().hex}@{double.settings['domain']}>"
    need(mail.to and not set(mail.to) & double.rejected, refused, "'to' parameter is not a valid address. please check documentation")
    if texts("o:testmode") == ["yes"]:
        double.rehearsed.append(mail)
        raise Answered({"id": mail.id, "message": "Queued. Thank you."})
    return mail, 200, json.dumps({"id": mail.id, "message": "Queued. Thank you."}), {}


# ---- Resend ----

def resend_error(status, name, text):
    return Refused(status, json.dumps({"statusCode": status, "name": name, "message": text}))


def resend(double, request):
    def refused(text):
        return resend_error(422, "validation_error", text)
    need(request.path == "/emails", lambda text: resend_error(404, "not_found", text), "no such path")
    if request.headers.get("authorization") != f"Bearer {double.secret}":
        raise resend_error(403 if "authorization" in request.headers else 401, "invalid_api_key", "API key is invalid")
    key = request.headers.get("idempotency-key", "")
    need(len(key) <= 256, lambda text: resend_error(400, "invalid_idempotency_key", text), "The key must be between 1-256 chars")
    document = json_of(request, refused)
    known(document, ("from", "to", "cc", "bcc", "reply_to", "subject", "html", "text", "headers", "attachments", "tags", "scheduled_at"), refused)
    need(document.get("from") and document.get("to") and document.get("subject"), refused, "Missing `from`, `to` or `subject` field.")
    need(document.get("html") or document.get("text"), refused, "Missing `html` or `text` field.")
    tags = {}
    for tag in document.get("tags", []):
        known(tag, ("name", "value"), refused, "tags")
        need(all(re.match(r"^[A-Za-z0-9_-]{1,256}$", tag[part]) for part in ("name", "value")), refused,
             "Tags should only contain ASCII letters, numbers, underscores, or dashes.")
        tags[tag["name"]] = tag["value"]
    mail = Mail("resend", str(uuid.uuid4()), address_of(document["from"], refused, "from"), *(addresses_of(document.get(name), refused, name)
                for name in ("to", "cc", "bcc")), "".join(addresses_of(document.get("reply_to"), refused, "reply_to")), document["subject"],
                document.get("html", ""), document.get("text", ""), document.get("headers", {}), tags, key=key)
    for part in document.get("attachments", []):
        known(part, ("content", "filename", "path", "content_type", "content_id", "inline_content_id"), refused, "attachments")
        mail.attachments.append((part["filename"], part.get("content_type"), bytes_of(part["content"], refused, "content"),
                                 part.get("content_id") or part.get("inline_content_id", "")))
    need(not set(mail.to) & double.rejected, refused, "Invalid `to` field.")
    return mail, 200, json.dumps({"id": mail.id}), {}


# ---- SparkPost ----

def sparkpost_error(status, text, code="1902"):
    return Refused(status, json.dumps({"errors": [{"message": text, "code": code, "description": text}]}))


def sparkpost(double, request):
    def refused(text):
        return sparkpost_error(422, text)
    need(request.path.split("?")[0] == "/api/v1/transmissions", lambda text: sparkpost_error(404, text), "no such path")
    if request.headers.get("authorization") != double.secret:
        raise sparkpost_error(401, "Unauthorized.")
    key = request.headers.get("idempotency-key", "")
    need(not key or re.match(r"^[A-Za-z0-9._-]{1,255}$", key), lambda text: sparkpost_error(400, text, "1602"), "bad idempotency key")
    document = json_of(request, refused)
    known(document, ("options", "recipients", "content", "metadata", "campaign_id", "return_path", "substitution_data", "description"), refused)
    people = document.get("recipients") or []
    need(people, refused, "recipients is a required field")
    for one in people:
        known(one, ("address", "metadata", "tags", "return_path", "substitution_data"), refused, "recipients")
        known(one["address"], ("email", "name", "header_to"), refused, "recipients.address")
        need(ADDRESS.match(one["address"].get("email", "")), refused, "recipients.address.email is not valid")
    content = document.get("content", {})
    mail = Mail("sparkpost", str(uuid.uuid4().int)[:18], to=[one["address"]["email"] for one in people if "header_to" not in one["address"]],
                bcc=[one["address"]["email"] for one in people if "header_to" in one["address"]],
                tags={**document.get("metadata", {}), **people[0].get("metadata", {})}, key=key)
    if "email_rfc822" in content:
        known(content, ("email_rfc822",), refused, "content")
        from_mime(mail, mime_of(content["email_rfc822"].encode(), refused))
    else:
        sparkpost_parts(mail, content, refused)
    need(not set(mail.to) & double.rejected, lambda text: sparkpost_error(400, text, "5002"), "invalid recipient")
    return mail, 200, json.dumps({"results": {"total_rejected_recipients": 0, "total_accepted_recipients": len(people), "id": mail.id}}), {}


def sparkpost_parts(mail, content, refused):
    known(content, ("from", "subject", "html", "text", "headers", "reply_to", "attachments", "inline_images"), refused, "content")
    sender = content.get("from", "")
    mail.sender = address_of(sender["email"] if isinstance(sender, dict) else sender, refused, "from")
    need(content.get("subject") and (content.get("html") or content.get("text")), refused, "content.subject and html or text are required")
    mail.subject, mail.html, mail.text = content["subject"], content.get("html", ""), content.get("text", "")
    mail.headers, mail.reply_to = content.get("headers", {}), parseaddr(content.get("reply_to", ""))[1]
    for where in ("attachments", "inline_images"):
        for part in content.get(where, []):
            known(part, ("name", "type", "data"), refused, where)
            mail.attachments.append((part["name"], part["type"], bytes_of(part["data"], refused, "data"), part["name"] if where == "inline_images" else ""))


# ---- SES v2 ----

def ses_error(status, kind, text):
    return Refused(status, json.dumps({"message": text}), {"x-amzn-ErrorType": kind})


def sha256_hex(data):
    return hashlib.sha256(data).hexdigest()


def with_ses_headers(raw, id, region):
    """SES writes Message-ID and Date itself, whatever a raw mail has (docs.aws.amazon.com/ses, "Header fields in Amazon SES")."""
    head, empty, body = raw.partition(b"\r\n\r\n")
    head, replaced = re.subn(rb"(?im)^Message-ID:[^\r]*(\r\n[ \t][^\r]*)*", f"Message-ID: <{id}@{region}.amazonses.com>".encode(), head)
    head, dated = re.subn(rb"(?im)^Date:[^\r]*", b"Date: " + format_datetime(datetime.datetime.now(datetime.timezone.utc)).encode(), head)
    assert (replaced, dated) == (1, 1)
    return head + empty + body


def ses_signature(request, secret, stamp, scope, names):
    """Signature Version 4 as Amazon describes it (the path is encoded a second time: this is not S3)."""
    path, _, query = request.path.partition("?")
    pairs = sorted(tuple(urllib.parse.quote(urllib.parse.unquote(word), safe="-_.~") for word in pair.partition("=")[::2]) for pair in query.split("&") if pair)
    lines = [f"{name}:{' '.join(request.headers[name].split())}" for name in names]
    canonical = "\n".join([request.method, urllib.parse.quote(path, safe="/-_.~"), "&".join(f"{a}={b}" for a, b in pairs), *lines, "", ";".join(names),
                           sha256_hex(request.body)])
    key = f"AWS4{secret}".encode()
    for word in scope.split("/"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.new(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256_hex(canonical.encode())}".encode(), hashlib.sha256).hexdigest()


def check_ses_signature(double, request):
    match = re.match(r"^AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$",
                     request.headers.get("authorization", ""))
    if not match:
        raise ses_error(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
    key_id, scope, names, given = match[1], match[2], match[3].split(";"), match[4]
    if key_id != double.key_id:
        raise ses_error(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
    stamp = request.headers.get("x-amz-date", "")
    must = {"host", *(name for name in request.headers if name.startswith("x-amz-"))}
    skew = abs((datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc) - double.now()).total_seconds())
    good = (names == sorted(names) and must <= set(names) and set(names) <= set(request.headers) and skew <= CLOCK_MAX_S
            and scope == f"{stamp[:8]}/{double.settings['region']}/ses/aws4_request")
    if not good or not hmac.compare_digest(given, ses_signature(request, double.secret, stamp, scope, names)):
        raise ses_error(403, "InvalidSignatureException", f"The request signature we calculated does not match (skew {skew} s, scope {scope}, signed {names})")


def ses(double, request):
    def refused(text):
        return ses_error(400, "BadRequestException", text)
    if (request.method, request.path) == ("GET", "/v2/email/account"):
        check_ses_signature(double, request)
        raise Answered({"SendQuota": double.quota, "SendingEnabled": True})
    need(request.path == "/v2/email/outbound-emails", lambda text: ses_error(404, "NotFoundException", text), "no such path")
    check_ses_signature(double, request)
    document = json_of(request, refused)
    known(document, ("FromEmailAddress", "Destination", "ReplyToAddresses", "Content", "EmailTags", "ConfigurationSetName", "FeedbackForwardingEmailAddress",
                     "ListManagementOptions", "FromEmailAddressIdentityArn"), refused)
    destination = document.get("Destination", {})
    known(destination, ("ToAddresses", "CcAddresses", "BccAddresses"), refused, "Destination")
    tags = {tag["Name"]: tag["Value"] for tag in document.get("EmailTags", [])}
    need(all(re.match(r"^[A-Za-z0-9_.@-]{1,256}$", word) for pair in tags.items() for word in pair), refused, "EmailTags has a character that is not taken")
    mail = Mail("ses", f"0100{uuid.uuid4().hex[:12]}-{uuid.uuid4()}-000000", parseaddr(document.get("FromEmailAddress", ""))[1],
                *(addresses_of(destination.get(f"{name}Addresses"), refused, name) for name in ("To", "Cc", "Bcc")), tags=tags)
    content = document.get("Content", {})
    need(set(content) == {"Raw"} and set(content["Raw"]) == {"Data"}, refused, "Content.Raw.Data is missing")
    raw = bytes_of(content["Raw"]["Data"], refused, "Content.Raw.Data")
    from_mime(mail, mime_of(raw, refused))
    mail.delivered = with_ses_headers(raw, mail.id, double.settings["region"])
    need(mail.to or mail.cc or mail.bcc, refused, "Destination is missing")
    need(not set(mail.to) & double.rejected, refused, "Invalid domain name or address in To")
    if set(mail.to) & double.suppressed:
        raise ses_error(400, "MessageRejected", "Email address is on the account suppression list")
    return mail, 200, json.dumps({"MessageId": mail.id}), {}


VENDORS = {"postmark": postmark, "sendgrid": sendgrid, "mailgun": mailgun, "resend": resend, "sparkpost": sparkpost, "ses": ses}
