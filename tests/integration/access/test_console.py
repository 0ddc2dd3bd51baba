# SPDX-License-Identifier: Apache-2.0
"""People at the console: a one-time link from an operator's shell, a session by a cookie in the place of a key, its ends."""
import http.client
import json
import re
import urllib.parse

import pytest

from tests.harness.clients.sse import EventStream
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.access.test_audit_log import log
from tests.integration.access.test_keys import make
from tests.integration.security.test_operator_key import ask, kind

SAME = {"Sec-Fetch-Site": "same-origin"}


PAGE = {"Accept": "text/html"}
FORM = {**SAME, **PAGE, "Content-Type": "application/x-www-form-urlencoded"}


def browse(pipeline, method, path, cookie=None, headers=None, body=None, port=None):
    """(status, headers, text), as a browser that follows nothing by itself."""
    connection = http.client.HTTPConnection("127.0.0.1", port or pipeline.api_port, timeout=30)
    try:
        sent = body if body is None or isinstance(body, str) else json.dumps(body)
        connection.request(method, path, sent, {**({"Cookie": cookie} if cookie else {}), **(headers or {})})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def link(pipeline, *words, tenant=None):
    done = pipeline.run_cli("console", "login", "--json", *words, **({"tenant": tenant} if tenant is not None else {"tenant": ""}))
    assert done.returncode == 0, done.stdout + done.stderr
    url = urllib.parse.urlsplit(json.loads(done.stdout)["url"])
    return f"{url.path}?{url.query}"


def press(pipeline, path, cookie=None, headers=None, port=None):
    """The button of the page that a link opens: the same of its answer. A link that opens no page has none."""
    page = browse(pipeline, "GET", path, cookie, {**PAGE, **(headers or {})}, port=port)
    if page[0] != 200:
        return page
    token, = re.findall(r'<form method="post"><input type="hidden" name="token" value="([0-9a-f]{64})">', page[2])
    return browse(pipeline, "POST", path, cookie, {**FORM, **(headers or {})}, f"token={token}", port)


def entered(pipeline, path):
    """The cookie that a link gives."""
    status, headers, _ = press(pipeline, path)
    assert (status, headers["Location"]) == (303, "/console/")
    return headers["Set-Cookie"].split(";")[0]


def enter(pipeline, *words, tenant=None):
    return entered(pipeline, link(pipeline, *words, tenant=tenant))


def me(pipeline, cookie, **headers):
    status, _, text = browse(pipeline, "GET", "/v1/me", cookie, headers)
    return status, json.loads(text)


@pytest.fixture(scope="module")
def operator(pipeline):
    return enter(pipeline, "--name", "olga@stentor.test")


def test_a_link_signs_in_once_with_a_cookie_that_no_script_reads(pipeline):
    path = link(pipeline, "--name", "ada")
    status, headers, _ = press(pipeline, path)
    assert (status, headers["Location"], headers["Cache-Control"]) == (303, "/console/", "no-store")
    cookie = headers["Set-Cookie"]
    name, value = cookie.split(";")[0].split("=")
    assert name == "stentor" and len(value) == 64 and int(value, 16)
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/" in cookie and "Secure" not in cookie  # plain HTTP at the loopback
    token = path.partition("?")[2]
    for method, sent in (("GET", None), ("POST", token)):
        status, _, text = browse(pipeline, method, path if sent is None else "/console/login", None, SAME, sent)
        assert status == 403 and "link-over" in text, "once"
    assert browse(pipeline, "GET", "/console/login?token=" + "0" * 64)[0] == 403
    assert browse(pipeline, "GET", "/console/login")[0] == 403
    # Of neither the text is kept.
    rows = pipeline.postgres.query("SELECT encode(token_hash, 'hex') FROM gateway.sessions UNION SELECT encode(token_hash, 'hex') FROM gateway.logins")
    assert rows and value not in {row[0] for row in rows}


def test_to_open_a_link_signs_no_one_in_and_uses_nothing_up(pipeline):
    """A scanner of mails, a site that leads a browser there, a picture on a page: all of them open it, none presses its button."""
    path = link(pipeline, "--name", "<b>\"dora\"&", "--role", "support", tenant=TENANT)
    for _ in range(3):
        status, headers, text = browse(pipeline, "GET", path, headers={**PAGE, "Sec-Fetch-Site": "cross-site"})
        assert status == 200 and "Set-Cookie" not in headers and headers["Cache-Control"] == "no-store"
    assert headers["Content-Type"].startswith("text/html") and headers["Referrer-Policy"] == "same-origin", "no-referrer would make the form's Origin null"
    policy = headers["Content-Security-Policy"]
    assert all(part in policy for part in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'")) and "<script" not in text
    assert "&lt;b&gt;&quot;dora&quot;&amp;" in text and "<b>" not in text, text
    assert "support" in text and TENANT in text and "You are signed in" not in text
    assert press(pipeline, path)[0] == 303, "it was still good"


def test_only_the_links_own_page_uses_it(pipeline):
    path = link(pipeline, "--name", "fay")
    token = path.partition("?")[2]
    own = {"Origin": f"http://127.0.0.1:{pipeline.api_port}"}
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"}, {"Origin": "null"},
                    {"Origin": "http://evil.test"}, {"Sec-Fetch-Site": "cross-site", **own}):
        status, answered, text = browse(pipeline, "POST", "/console/login", None, headers, token)
        assert status == 403 and "foreign-origin" in text and "Set-Cookie" not in answered, headers
    for body in ("", "token=", "x", "token=" + "0" * 64, f"{token}&a=b", f"a=b&{token}"):
        status, answered, text = browse(pipeline, "POST", "/console/login", None, SAME, body)
        assert status == 403 and "Set-Cookie" not in answered, body
    assert browse(pipeline, "POST", "/console/login", None, SAME, "token=" + "0" * 4096)[0] == 413
    assert browse(pipeline, "POST", path, None, SAME)[0] == 403, "of its address alone it is not used"
    status, headers, _ = browse(pipeline, "PUT", "/console/login", None, SAME, token)
    assert status == 405 and headers["Allow"] == "GET, POST"
    # A browser without Sec-Fetch-Site: over plain HTTP to another host than the loopback none sends it.
    direct = {"Origin": f"http://127.0.0.1:{pipeline.gateway_port}"}
    assert browse(pipeline, "POST", "/console/login", None, direct, token, pipeline.gateway_port)[0] == 303


def test_a_link_says_which_session_it_ends_and_ends_it_only_by_its_button(pipeline):
    before = enter(pipeline, "--name", "gus")
    path = link(pipeline, "--name", "mallory", "--role", "viewer", tenant=TENANT)
    status, _, text = browse(pipeline, "GET", path, before, PAGE)
    assert status == 200 and "mallory" in text and "You are signed in here as <strong>gus</strong>" in text
    assert me(pipeline, before)[1]["user"] == "gus", "not asked, not replaced"
    # One that begins no session ends none.
    assert browse(pipeline, "POST", "/console/login", before, SAME, "token=" + "0" * 64)[0] == 403
    assert me(pipeline, before)[0] == 200
    status, headers, _ = press(pipeline, path, before)
    assert status == 303
    assert me(pipeline, headers["Set-Cookie"].split(";")[0])[1]["user"] == "mallory"
    assert me(pipeline, before)[0] == 401, "its secret is in no browser any more"
    # What has ended is not named.
    assert "You are signed in" not in browse(pipeline, "GET", link(pipeline, "--name", "hal"), before, PAGE)[2]


def test_an_operators_session_may_what_an_operators_key_may_and_is_named_in_the_log(pipeline, operator):
    status, shown = me(pipeline, operator)
    assert status == 200 and shown["user"] == "olga(at)stentor.test" and shown["role"] == "operator" and shown["tenants"] == ["platform"]
    assert shown["operator"] and "key_id" not in shown and shown["session_id"].startswith("ses_")
    assert me(pipeline, operator, **{"Stentor-Tenant": TENANT})[1]["tenant"] == TENANT
    status, _, text = browse(pipeline, "PUT", "/v1/recipients/rcp_01J9ZQ4XK3W6V8Y2T7N5M1R0PD", operator, {**SAME, "Stentor-Tenant": TENANT},
                             {"name": "Cleo", "addresses": [{"channel": "email", "address": "cleo@example.com"}]})
    assert status in (200, 201), text
    reader = make(pipeline, {"scopes": ["audit:read"]}, TENANT)
    entry = log(pipeline, reader, actor="user olga(at)stentor.test")[-1]
    assert entry["action"] == "PUT /v1/recipients/{}" and entry["kind"] == "write", "of a person everything is noted"
    # ingest takes it too.
    status, _, text = browse(pipeline, "POST", "/v1/notifications", operator, {**SAME, "Stentor-Tenant": TENANT}, {"to": 7})
    assert status == 422, text
    assert log(pipeline, reader, actor="user olga(at)stentor.test")[-1]["program"] == "stentor-ingest"


def test_a_write_from_another_site_is_refused(pipeline, operator):
    def write(headers, port=None):
        return browse(pipeline, "PATCH", "/v1/tenant", operator, {"Stentor-Tenant": TENANT, **headers}, {"name": "Acme"}, port)
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
                    {"Origin": "http://evil.test"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site", "Origin": f"http://127.0.0.1:{pipeline.gateway_port}"}):
        status, _, text = write(headers)
        assert status == 403 and "foreign-origin" in text, headers
    assert write(SAME)[0] == 200
    # An older browser says where it comes from.
    assert write({"Origin": f"http://127.0.0.1:{pipeline.gateway_port}"}, pipeline.gateway_port)[0] == 200
    assert browse(pipeline, "POST", "/console/logout", operator)[0] == 403
    assert me(pipeline, operator)[0] == 200, "still in"


def test_a_role_is_held_to_its_scopes_and_its_tenant(pipeline):
    cookie = enter(pipeline, "--name", "sam", "--role", "viewer", tenant=TENANT)
    status, shown = me(pipeline, cookie)
    assert status == 200 and shown["tenant"] == TENANT and not shown["operator"] and "recipients:reveal" not in shown["scopes"]
    status, _, text = browse(pipeline, "PATCH", "/v1/tenant", cookie, SAME, {"name": "x"})
    assert status == 403 and "tenant:write" in text
    status, _, text = browse(pipeline, "GET", "/v1/tenant", cookie, {"Stentor-Tenant": "platform"})
    assert status == 403 and "foreign-tenant" in text
    # No key makes a session that may more than who makes it, nor an operator of a tenant.
    manager = make(pipeline, {"scopes": ["keys:manage", "viewer"]}, TENANT)
    assert ask(pipeline, manager["key"], "POST", "/v1/console/logins", {"role": "viewer"})[0] == 201
    assert kind(ask(pipeline, manager["key"], "POST", "/v1/console/logins", {"role": "owner"})) == (403, "missing-scope")
    status, problem = ask(pipeline, pipeline.operator_key, "POST", "/v1/console/logins", {"role": "operator"}, TENANT)
    assert status == 422 and problem["field"] == "role"
    for body, field in (({"role": "king"}, "role"), ({"name": "two\nlines"}, "name"), ({"name": ""}, "name"), ({"tenant": "x"}, "tenant")):
        status, problem = ask(pipeline, pipeline.operator_key, "POST", "/v1/console/logins", body)
        assert status == 422 and problem["field"] == field, problem
    assert browse(pipeline, "GET", "/v1/tenant", cookie, {"Authorization": "Bearer stn_no.key"})[0] == 401, "a key counts before a cookie"


def test_sessions_are_listed_revoked_signed_out_and_end_by_themselves(pipeline, operator):
    cookie = enter(pipeline, "--name", "eve", "--role", "support", tenant=TENANT)
    other = make(pipeline, {"scopes": ["owner"]}, "keys-one")
    session = me(pipeline, cookie)[1]["session_id"]
    listed = json.loads(pipeline.cli("console", "sessions", "--json", tenant=TENANT))
    assert {"eve"} <= {row["user"] for row in listed} and all(row["tenants"] == [TENANT] for row in listed), listed
    assert session not in {row["id"] for row in ask(pipeline, other["key"], "GET", "/v1/console/sessions")[1]["data"]}
    assert ask(pipeline, other["key"], "DELETE", f"/v1/console/sessions/{session}")[0] == 404, "another tenant's"
    assert "revoked" in pipeline.cli("console", "revoke", session, tenant=TENANT)
    status, problem = me(pipeline, cookie)
    assert status == 401 and problem["type"].endswith("session-over")
    # Signed out.
    cookie = enter(pipeline, "--name", "eve", "--role", "support", tenant=TENANT)
    status, headers, _ = browse(pipeline, "POST", "/console/logout", cookie, SAME)
    assert status == 303 and "Max-Age=0" in headers["Set-Cookie"]
    assert me(pipeline, cookie)[0] == 401
    # Idle for too long; at its end, however busy.
    for change in ("seen_at = now() - make_interval(secs => idle_seconds)", "expires_at = now()"):
        cookie = enter(pipeline, "--name", "ida", "--role", "support", tenant=TENANT)
        assert me(pipeline, cookie)[0] == 200
        pipeline.postgres.query(f"UPDATE gateway.sessions SET {change} WHERE id = %s", me(pipeline, cookie)[1]["session_id"])
        assert me(pipeline, cookie)[0] == 401, change
    # A link's ten minutes.
    path = link(pipeline, "--name", "late", tenant=TENANT)
    pipeline.postgres.query("UPDATE gateway.logins SET expires_at = now() WHERE user_name = 'late'")
    assert browse(pipeline, "GET", path)[0] == 403


def test_a_session_ends_with_the_key_that_made_its_link(pipeline):
    manager = make(pipeline, {"scopes": ["keys:manage", "viewer"]}, TENANT)
    links = [ask(pipeline, manager["key"], "POST", "/v1/console/logins", {"role": "viewer", "name": name})[1]["path"] for name in ("finder", "later")]
    cookies = [entered(pipeline, links[0])]
    assert me(pipeline, cookies[0])[0] == 200
    assert ask(pipeline, manager["key"], "DELETE", f"/v1/api-keys/{manager['key_id']}")[0] in (200, 204)
    wait_until(lambda: ask(pipeline, manager["key"], "GET", "/v1/me")[0] == 401, 20, "the key being revoked")
    cookies += [entered(pipeline, links[1])]
    for cookie in cookies:
        status, problem = me(pipeline, cookie)
        assert status == 401 and problem["type"].endswith("session-over"), problem
        assert browse(pipeline, "POST", "/v1/notifications", cookie, SAME, {}, pipeline.ingest_port)[0] == 401, "ingest asks too"


def test_a_persons_streams_go_on_though_no_key_is_theirs(pipeline, operator):
    who = {"Cookie": operator, "Stentor-Tenant": TENANT}
    statuses, picture = (EventStream(pipeline.api_port, path, None, who) for path in ("/v1/live/status", "/v1/live/pipeline"))
    wait_until(lambda: len(picture.named("pipeline")) >= 4, 30, "more than two seconds of the pipeline")  # who is there is asked each second
    sent = pipeline.send()
    wait_until(lambda: any(event.json["data"]["id"] == sent for event in statuses.named("status")), 20, "its status")
    for stream in (statuses, picture):
        assert not stream.named("end") and not stream.ended.is_set(), stream.events
        stream.close()


def test_behind_https_the_cookie_is_the_hosts_alone_and_plain_http_is_for_the_machine_itself(pipeline):
    from tests.harness.processes import free_port
    port, plain = free_port(), free_port()
    secure = pipeline.service("gateway", "secure", STENTOR_GATEWAY_PORT=port, STENTOR_CONSOLE_URL="https://stentor.example").start()
    try:
        status, headers, _ = press(pipeline, link(pipeline, "--name", "tls"), port=port)
        printed = pipeline.run_cli("console", "login", "--json", tenant="", STENTOR_API_URL=f"http://127.0.0.1:{port}").stdout
        assert json.loads(printed)["url"].startswith("https://stentor.example/console/login?token="), "not the inner address of the command line"
        assert status == 303 and headers["Set-Cookie"].startswith("__Host-stentor=") and "Secure" in headers["Set-Cookie"]
        cookie = headers["Set-Cookie"].split(";")[0]
        assert browse(pipeline, "GET", "/v1/me", cookie, port=port)[0] == 200
        assert browse(pipeline, "GET", "/v1/me", cookie.removeprefix("__Host-"), port=port)[0] == 401, "of that name none is taken"
        assert browse(pipeline, "PATCH", "/v1/tenant", cookie, {"Origin": "https://stentor.example", "Stentor-Tenant": TENANT}, {"name": "Acme"}, port)[0] == 200
        assert browse(pipeline, "PATCH", "/v1/tenant", cookie, {"Origin": f"http://127.0.0.1:{port}", "Stentor-Tenant": TENANT}, {"name": "Acme"}, port)[0] == 403
    finally:
        assert secure.stop() == 0
    # Whom a trusted proxy names is not at this machine.
    open_ = pipeline.service("gateway", "plain", STENTOR_GATEWAY_PORT=plain, STENTOR_GATEWAY_TRUSTED_PROXIES="127.0.0.1").start()
    try:
        far = {"X-Forwarded-For": "192.0.2.9"}
        path = link(pipeline, "--name", "far")
        status, _, text = browse(pipeline, "GET", path, headers=far, port=plain)
        assert status == 403 and "plain-http" in text
        token = path.partition("?")[2]
        assert browse(pipeline, "POST", "/console/login", None, {**far, **SAME}, token, plain)[0] == 403
        status, headers, _ = press(pipeline, path, port=plain)
        assert status == 303, "the link was not used up"
        assert browse(pipeline, "GET", "/v1/me", headers["Set-Cookie"].split(";")[0], far, port=plain)[0] == 401
    finally:
        assert open_.stop() == 0
