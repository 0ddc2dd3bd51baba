# SPDX-License-Identifier: Apache-2.0
"""People sign in at the console by OpenID Connect: at npm's oidc-provider, as a browser does it, and at one that does wrong on order."""
import contextlib
import json
import time
import urllib.parse

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.harness.oidc import Person, Provider, Rogue, text_of
from tests.harness.pipeline import TENANT
from tests.harness.processes import free_port, wait_until
from tests.integration.access.test_console import SAME, link

ROLES = "ops=operator@platform,acme-support=support@acme,acme-support=support@keys-one,CN=viewers@acme=viewer@acme,both=viewer@acme,both=viewer@platform"
PEOPLE = {
    "olga": {"preferred_username": "olga@stentor.test", "groups": ["staff", "ops"]},
    "sam": {"preferred_username": "sam", "groups": ["acme-support", "CN=viewers@acme"]},
    "vera": {"groups": "CN=viewers@acme"},
    "walt": {"preferred_username": "walt", "groups": ["both"]},
    "nora": {"preferred_username": "nora", "groups": ["staff"]},
    "alan": {"preferred_username": "alan"},
}


@contextlib.contextmanager
def gateway(pipeline, instance, issuer, port=None, url=None, **options):
    port = port or free_port()
    running = pipeline.service("gateway", instance, STENTOR_GATEWAY_PORT=port, STENTOR_CONSOLE_URL=url or f"http://127.0.0.1:{port}",
                               STENTOR_OIDC_ISSUER=issuer, STENTOR_OIDC_CLIENT_ID="console", STENTOR_OIDC_CLIENT_SECRET="s:cret/+&", STENTOR_OIDC_ROLES=ROLES,
                               **options).start()
    running.url = f"http://127.0.0.1:{port}"
    try:
        yield running
    finally:
        assert running.stop() == 0


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    """(the provider, a gateway's port), which are to know each other's."""
    folder = tmp_path_factory.mktemp("oidc")
    port = free_port()
    client = {"client_id": "console", "client_secret": "s:cret/+&", "redirect_uris": [f"http://127.0.0.1:{port}/console/callback"],
              "response_types": ["code"], "grant_types": ["authorization_code"], "token_endpoint_auth_method": "client_secret_basic",
              "id_token_signed_response_alg": "ES256"}
    running = Provider(folder, [client], PEOPLE).start()
    running.gateway_port = port
    yield running
    running.stop()


@pytest.fixture(scope="module")
def console(pipeline, provider):
    """The console's address, at a gateway whose provider is npm's."""
    with gateway(pipeline, "oidc", provider.issuer, provider.gateway_port) as running:
        yield running.url


@pytest.fixture(scope="module")
def rogue():
    running = Rogue()
    yield running
    running.close()


@pytest.fixture(scope="module")
def astray(pipeline, rogue):
    with gateway(pipeline, "rogue", rogue.issuer) as running:
        yield running.url


def begin(url, person, path="/console/oidc", **headers):
    status, answered, text = person.ask(url + path, **headers)
    assert status == 303, text
    return answered["Location"]


def query_of(url):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def sign_in(url, provider, name):
    """(the person, what the callback answered)."""
    person = Person()
    return person, person.ask(provider.log_in(person, begin(url, person), name))


def me(url, person):
    status, _, text = person.ask(f"{url}/v1/me")
    return status, json.loads(text)


def refused(answer):
    status, headers, text = answer
    assert headers["Cache-Control"] == "no-store" and "Location" not in headers
    problem = json.loads(text)
    return status, problem["type"].removeprefix("urn:stentor:problem:"), problem["detail"]


# ---- a real provider ----

def test_a_person_signs_in_at_the_provider_and_may_what_the_groups_give(pipeline, provider, console):
    person, (status, headers, text) = sign_in(console, provider, "olga")
    assert (status, headers["Location"], headers["Cache-Control"]) == (303, f"{console}/console/", "no-store"), text
    assert set(person.cookies[urllib.parse.urlsplit(console).netloc]) == {"stentor"}, "the login's cookie is gone"
    status, shown = me(console, person)
    assert status == 200 and shown["user"] == "olga(at)stentor.test" and shown["role"] == "operator" and shown["tenants"] == ["platform"] and shown["operator"]
    listed = json.loads(pipeline.cli("console", "sessions", "--json", tenant=""))
    assert {row["made_by"] for row in listed if row["id"] == shown["session_id"]} == {"oidc"}
    # A session as any other: every replica takes it, a write needs the console's own page, it can be ended.
    cookie = f"stentor={person.cookies[urllib.parse.urlsplit(console).netloc]['stentor']}"
    assert Person().ask(f"http://127.0.0.1:{pipeline.ingest_port}/v1/notifications", "POST", {}, Cookie=cookie, **SAME)[0] != 401
    assert person.ask(f"{console}/console/logout", "POST")[0] == 403
    assert person.ask(f"{console}/console/logout", "POST", **SAME)[0] == 303
    assert me(console, person)[0] == 401
    # The first row that fits says the role, its other rows the tenants; a group may be a text and have '=' and '@' in it.
    for name, user, role, tenants in (("sam", "sam", "support", ["acme", "keys-one"]), ("vera", "vera", "viewer", ["acme"])):
        person, answer = sign_in(console, provider, name)
        assert answer[0] == 303, answer
        shown = me(console, person)[1]
        assert (shown["user"], shown["role"], shown["tenants"], shown["operator"]) == (user, role, tenants, False)


def test_who_only_looks_at_a_tenant_and_at_the_platform_chooses_between_them(provider, console):
    person, _ = sign_in(console, provider, "walt")
    for tenant in (TENANT, "platform"):
        status, _, text = person.ask(f"{console}/v1/me", **{"Stentor-Tenant": tenant})
        assert status == 200 and json.loads(text)["tenant"] == tenant and json.loads(text)["operator"] is False, text
    assert person.ask(f"{console}/v1/me", **{"Stentor-Tenant": "keys-one"})[0] == 403


def test_the_login_goes_to_the_provider_with_pkce_and_to_no_other_place(console, provider):
    person = Person()
    status, headers, _ = person.ask(f"{console}/console/oidc?next=https://evil.test/&redirect_uri=https://evil.test/", Host="evil.test")
    asked = query_of(headers["Location"])
    assert status == 303 and headers["Location"].startswith(f"{provider.issuer}/auth?") and headers["Cache-Control"] == "no-store"
    assert asked["redirect_uri"] == f"{console}/console/callback" and asked["response_type"] == "code" and asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "openid profile email" and asked["client_id"] == "console"
    values = [asked[name] for name in ("state", "nonce", "code_challenge")]
    assert len({len(value) for value in values}) == 1 and len(values[0]) == 43 and len(set(values)) == 3
    cookie = headers["Set-Cookie"]
    assert cookie.startswith("stentor-login=") and all(word in cookie for word in ("HttpOnly", "SameSite=Lax", "Max-Age=600", "Path=/"))
    assert not any(value in cookie for value in values)
    back = provider.log_in(person, headers["Location"], "olga")
    status, headers, _ = person.ask(back + "&next=https://evil.test/", Host="evil.test")
    assert status == 303 and headers["Location"].endswith("/console/") and "evil" not in headers["Location"]
    # Of another installation's console it knows nothing.
    assert query_of(begin(console, Person()))["state"] != values[0]


def test_the_page_knows_which_ways_there_are(pipeline, console):
    for url, oidc in ((console, True), (f"http://127.0.0.1:{pipeline.api_port}", False)):
        status, headers, text = Person().ask(f"{url}/console/ways")
        assert status == 200 and json.loads(text) == {"link": True, "oidc": oidc} and headers["Content-Type"] == "application/json"
    assert Person().ask(f"{console}/console/ways", "POST", {})[0] == 405
    plain = f"http://127.0.0.1:{pipeline.gateway_port}"
    assert [refused(Person().ask(plain + path))[:2] for path in ("/console/oidc", "/console/callback?code=x&state=y")] == [(404, "no-provider")] * 2


def test_a_login_is_good_once_and_in_the_browser_that_began_it(provider, console):
    person, other = Person(), Person()
    back = provider.log_in(person, begin(console, person), "olga")
    begin(console, other)  # whose own cookie is another one
    assert refused(other.ask(back))[:2] == (403, "login-over")
    assert refused(Person().ask(back))[:2] == (403, "login-over")
    state = query_of(back)["state"]
    for wrong in (state[:-1] + ("A" if state[-1] != "A" else "B"), state[1:], "", state * 200):
        assert refused(person.ask(back.replace(state, wrong)))[:2] == (403, "login-over")
    cookies = {name: dict(jar) for name, jar in person.cookies.items()}
    assert person.ask(back)[0] == 303
    assert refused(person.ask(back))[:2] == (403, "login-over"), "its cookie is gone"
    person.cookies = cookies
    status, slug, detail = refused(person.ask(back))
    assert (status, slug) == (403, "login-refused") and "code" in detail, "and its code"
    # The code of another login.
    back = provider.log_in(person, begin(console, person), "olga")
    stolen = query_of(back)["code"]
    mine = Person()
    fresh = provider.log_in(mine, begin(console, mine), "nora")
    assert refused(mine.ask(fresh.replace(query_of(fresh)["code"], stolen)))[:2] == (403, "login-refused"), "the verifier is another"


def test_who_is_in_no_group_or_does_not_agree_is_refused_with_the_reason(provider, console):
    for name in ("nora", "alan"):  # in others; without the claim
        person, answer = sign_in(console, provider, name)
        status, slug, detail = refused(answer)
        assert (status, slug) == (403, "no-role") and "groups" in detail
        assert me(console, person)[0] == 401
    person = Person()
    back = provider.log_in(person, begin(console, person), "olga", agrees=False)
    assert query_of(back)["error"] == "access_denied"
    status, headers, text = person.ask(back, Accept="text/html,*/*")
    assert status == 403 and headers["Content-Type"] == "text/html; charset=utf-8" and "access was denied" in text and 'href="/console/"' in text
    # Who has not begun here has nothing said to them in our name.
    begin(console, person)
    assert refused(person.ask(f"{console}/console/callback?error=access_denied&error_description=call+us&state=x"))[:2] == (403, "login-over")
    state = query_of(begin(console, person))["state"]
    status, slug, detail = refused(person.ask(f"{console}/console/callback?error=%3Cb%3E&error_description=call+us&state={state}&iss={provider.issuer}"))
    assert (status, slug) == (403, "login-refused") and "(unknown)" in detail and "call us" not in detail
    # RFC 9207: this provider names itself in each answer.
    for issuer in ("", "&iss=https://evil.test"):
        state = query_of(begin(console, person))["state"]
        assert "another identity provider" in refused(person.ask(f"{console}/console/callback?code=x&state={state}{issuer}"))[2]


def test_while_the_provider_is_away_links_go_on(pipeline, provider):
    with gateway(pipeline, "alone", provider.issuer, url="https://stentor.example") as running:
        provider.stop()
        try:
            status, headers, text = Person().ask(f"{running.url}/console/oidc")
            assert status == 503 and "provider-unavailable" in text and "stentor console login" in text and headers["Retry-After"]
            person = Person()
            path = link(pipeline, "--name", "lena")
            assert person.ask(running.url + path)[0] == 200
            token = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)["token"][0]
            assert person.ask(f"{running.url}/console/login", "POST", {"token": token}, **SAME)[0] == 303
            assert me(running.url, person)[1]["user"] == "lena"
            assert json.loads(Person().ask(f"{running.url}/console/ways")[2])["oidc"], "it is a way, though not now"
        finally:
            provider.start()
        status, headers, _ = Person().ask(f"{running.url}/console/oidc")
        assert status == 303 and query_of(headers["Location"])["redirect_uri"] == "https://stentor.example/console/callback"
        assert headers["Set-Cookie"].startswith("__Host-stentor-login=") and "; Secure" in headers["Set-Cookie"]


# ---- one that does wrong ----

def callback(url, rogue, person=None, code="x", **claims):
    """One login: what the callback answers when the rogue gives a token of these claims, and the nonce unless it is another."""
    person = person or Person()
    asked = query_of(begin(url, person))
    rogue.claims = {"nonce": asked["nonce"], **claims}
    return person.ask(f"{url}/console/callback?code={code}&state={asked['state']}")


@contextlib.contextmanager
def answering(rogue, path, answer):
    before = rogue.answers[path]
    rogue.answers[path] = answer
    try:
        yield
    finally:
        rogue.answers[path] = before


def test_a_token_that_is_not_for_this_login_opens_nothing(astray, rogue):
    person = Person()
    asked, jar = query_of(begin(astray, person)), person.cookies[urllib.parse.urlsplit(astray).netloc]
    rogue.claims, cookie = {"nonce": asked["nonce"]}, jar["stentor-login"]
    status, headers, text = person.ask(f"{astray}/console/callback?code=a%20c&state={asked['state']}")
    assert status == 303, text
    form = rogue.forms[-1]
    assert form["code"] == "a c" and form["grant_type"] == "authorization_code" and form["redirect_uri"] == f"{astray}/console/callback"
    assert (form["client_id"], form["client_secret"]) == ("console", "s:cret/+&") and len(form["code_verifier"]) == 43
    assert me(astray, person)[1]["user"] == "u1", "without the claim it is the subject"
    jar["stentor-login"] = cookie
    status, slug, detail = refused(person.ask(f"{astray}/console/callback?code=a%20c&state={asked['state']}"))
    assert (status, slug) == (403, "login-over") and "was used" in detail, "once, though this provider takes a code again"
    now = int(time.time())
    for claims, why in (({"nonce": "another"}, "another login"), ({"nonce": None}, "another login"), ({"aud": "shop"}, "another client"),
                        ({"aud": ["console", "shop"]}, "another client"), ({"azp": "shop"}, "another client"), ({"iss": "https://evil.test"}, "another issuer"),
                        ({"exp": now - 90}, "expired"), ({"exp": None}, "expired"), ({"iat": now + 3600}, "not yet"), ({"sub": None}, "no one")):
        status, slug, detail = refused(callback(astray, rogue, **claims))
        assert (status, slug) == (403, "login-refused") and why in detail, (claims, detail)
    assert refused(callback(astray, rogue, groups={"ops": True}))[1] == "no-role"


def test_a_token_that_the_provider_has_not_signed_opens_nothing(astray, rogue):
    stranger = rsa.generate_private_key(65537, 2048)
    none = text_of(json.dumps({"alg": "none"}).encode())
    makers = {
        "cannot be read": lambda: f"{none}.{rogue.sign(rogue.claims).split('.')[1]}.",
        "neither RS256": lambda: f"{none}.{rogue.sign(rogue.claims).split('.')[1]}.AAAA",
        "signature is wrong": lambda: rogue.sign(rogue.claims, key=stranger),
        "no key": lambda: rogue.sign(rogue.claims, {"kid": "unknown"}, stranger),
    }
    for why, make in makers.items():
        with answering(rogue, "/token", lambda form, make=make: (200, json.dumps({"id_token": make()}).encode())):
            answer = callback(astray, rogue)
        if why == "no key":  # for a few seconds keys are not asked for again
            assert answer[0] in (403, 503), answer
        else:
            assert refused(answer)[1] == "login-refused" and why in refused(answer)[2], answer
    # Unknown keys are asked for once in ten seconds, however many tokens name them.
    before, begun = rogue.asked.count("/keys"), time.monotonic()
    with answering(rogue, "/token", lambda form: (200, json.dumps({"id_token": makers["no key"]()}).encode())):
        for _ in range(5):
            assert callback(astray, rogue)[0] in (403, 503)
    assert rogue.asked.count("/keys") <= before + 1 + (time.monotonic() - begun) // 10


def test_an_answer_that_is_none_is_refused_and_ends(pipeline, astray, rogue):
    huge = b'{"id_token": "' + b"A" * (1 << 20) + b'"}'
    for answer in ((200, b"<html>"), (200, b"[]"), (200, b"{}"), (200, b'{"id_token": 7}'), (200, huge), (500, b""), (200, b"\xff{}")):
        with answering(rogue, "/token", answer):
            assert refused(callback(astray, rogue))[:2] == (503, "provider-unavailable"), answer[1][:20]
    with answering(rogue, "/token", (400, b'{"error": "invalid_grant"}')):
        assert refused(callback(astray, rogue))[:2] == (403, "login-refused")
    with answering(rogue, "/token", (401, b'{"error": "invalid_client"}')):
        status, slug, detail = refused(callback(astray, rogue))
        assert (status, slug) == (503, "provider-unavailable") and "the gateway's log" in detail
    assert refused(callback(astray, rogue, code="x" * 5000))[:2] == (403, "login-refused")
    # Its own document and keys, at a gateway that has none yet.
    document = "/.well-known/openid-configuration"
    with gateway(pipeline, "fresh", rogue.issuer) as fresh:
        wrong = [(200, b"<html>"), (404, b""), (200, b'{"a": "' + b"A" * (1 << 20) + b'"}'), rogue.document(issuer="https://evil.test"),
                 rogue.document(token_endpoint="http://192.0.2.1/token"), rogue.document(authorization_endpoint="javascript:alert(1)")]
        for answer in wrong:
            with answering(rogue, document, answer):
                assert refused(Person().ask(f"{fresh.url}/console/oidc"))[:2] == (503, "provider-unavailable"), answer[1][:80]
        for answer in ((200, b"<html>"), (200, b'{"keys": "' + b"A" * (1 << 20) + b'"}'), (503, b"")):
            with answering(rogue, "/keys", answer):
                assert refused(callback(fresh.url, rogue))[:2] == (503, "provider-unavailable"), answer[1][:20]
        rogue.hang = 60
        try:
            begun = time.monotonic()
            assert refused(callback(fresh.url, rogue))[:2] == (503, "provider-unavailable") and time.monotonic() - begun < 50
        finally:
            rogue.hang = 0
        assert callback(fresh.url, rogue)[0] == 303, "it is well again, and nothing of before is kept"


def test_new_keys_are_fetched_when_a_token_names_one(astray, rogue):
    assert callback(astray, rogue)[0] == 303
    rogue.key, rogue.kid = rsa.generate_private_key(65537, 2048), "k2"
    wait_until(lambda: callback(astray, rogue)[0] == 303, 20, "a login by the new key")
    assert rogue.asked.count("/.well-known/openid-configuration") < 20, "the document is kept"


def test_a_provider_of_an_authority_that_is_not_trusted_is_not_asked(pipeline, tmp_path):
    rogue = Rogue(tmp_path)
    try:
        with gateway(pipeline, "tls", rogue.issuer) as running:
            status, slug, detail = refused(Person().ask(f"{running.url}/console/oidc"))
            assert (status, slug) == (503, "provider-unavailable") and "the gateway's log" in detail and rogue.asked == []
        with gateway(pipeline, "tls", rogue.issuer, STENTOR_OIDC_CA_FILE=rogue.authority) as running:
            assert callback(running.url, rogue)[0] == 303
    finally:
        rogue.close()


def test_settings_that_cannot_work_end_the_gateway_with_their_names(pipeline):
    def said(**options):
        process = pipeline.service("gateway", "wrong", STENTOR_GATEWAY_PORT=free_port(), **options).start(wait=False)
        assert process.exit_status() != 0
        return process.tail(3)
    good = {"STENTOR_OIDC_ISSUER": "https://id.test", "STENTOR_OIDC_CLIENT_ID": "c", "STENTOR_OIDC_ROLES": "a=viewer@acme", "STENTOR_CONSOLE_URL": "https://c.test"}
    for name, value, part in (("STENTOR_OIDC_ISSUER", "http://id.test", "https://"), ("STENTOR_CONSOLE_URL", "", "STENTOR_CONSOLE_URL"),
                              ("STENTOR_OIDC_ROLES", "a=operator@acme", "only platform has operators"), ("STENTOR_OIDC_ISSUER", "", "STENTOR_OIDC_ISSUER")):
        text = said(**{**good, name: value})
        assert part in text and "STENTOR_OIDC" in text, text
