# SPDX-License-Identifier: Apache-2.0
"""People through the real pipeline: API, PEOPLE, projection, tables, command line; and a projector killed within an import."""
import http.client
import json
import threading
from urllib.parse import urlencode

import pytest

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import free_port, wait_until
from tests.harness.protobuf import messages

ALICE = {
    "identity_type": "user", "identity_id": "u-1", "name": "Alice Example", "locale": "de-DE", "time_zone": "Europe/Berlin",
    "quiet_hours": {"start": "22:00", "end": "07:00"},
    "addresses": [{"channel": "email", "address": "Alice@Example.com", "primary": True, "verified": True},
                  {"channel": "sms", "address": "+49 151 2345678", "label": "mobile"}]}
UNKNOWN_RECIPIENT = "rcp_01KAGTQ5M00000000000000000"


class Api:
    def __init__(self, port, key):
        self.port = port
        self.key = key

    def __call__(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, raw, {"Authorization": f"Bearer {self.key}"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()


@pytest.fixture(scope="module")
def people():
    running = Pipeline(durable=True).start(services=["ingest", "gateway"])
    yield running
    running.stop()


@pytest.fixture
def api(people):
    return Api(people.api_port, people.key)


@pytest.fixture
def other(people):
    people.cli("tenant", "put", "globex")
    key = json.loads(people.cli("apikey", "create", "--json", tenant="globex"))["key"]
    api = Api(people.api_port, key)
    wait_until(lambda: api("GET", f"/v1/recipients/{UNKNOWN_RECIPIENT}")[0] == 404, 20, "the other tenant's key")
    return api


def _post(api, record):
    status, body = api("POST", "/v1/recipients", record)
    assert status in (200, 201), body
    return body["id"]


def _found(api, query):
    status, body = api("GET", "/v1/recipients?" + query)
    assert status == 200, body
    return body["data"]


# ---- the record -----------------------------------------------------------------------------------------------------


def test_who_was_just_stored_is_read_found_by_address_and_by_identity_and_seen_by_no_other_tenant(api, other, people):
    alice = _post(api, ALICE)
    status, shown = api("GET", f"/v1/recipients/{alice}")
    assert status == 200 and shown["id"] == alice
    assert [a["address"] for a in shown["addresses"]] == ["Ali***@example.com", "+49***78"] and shown["name"] == "A***"
    assert shown["quiet_hours"] == {"start": "22:00", "end": "07:00"} and shown["time_zone"] == "Europe/Berlin"
    whole = api("GET", f"/v1/recipients/{alice}?reveal=true")[1]
    assert [a["address"] for a in whole["addresses"]] == ["Alice@example.com", "+491512345678"]
    assert whole["name"] == "Alice Example" and whole["addresses"][0]["primary"] and whole["addresses"][1]["label"] == "mobile"
    for query in ({"address": "ALICE@example.COM"}, {"address": "+491512345678"}, {"identity_type": "user", "identity_id": "u-1"}):
        path = "/v1/recipients?" + urlencode(query)
        assert [p["id"] for p in _found(api, urlencode(query))] == [alice], query
        assert other("GET", path)[1] == {"data": [], "next": None}, query
    for path in ("", "/preferences", "/consents"):
        assert other("GET", f"/v1/recipients/{alice}{path}")[0] == 404
    for path, body in (("/preferences", []), ("/unsubscription", {"unsubscribed": True})):
        assert other("PUT", f"/v1/recipients/{alice}{path}", body)[0] == 404
    assert other("DELETE", f"/v1/recipients/{alice}")[0] == 404
    seen = people.postgres.query("SELECT count(*) FROM people.addresses", role="stentor_ingest", tenant="globex")
    assert seen == [(0,)]
    stored = people.postgres.query("SELECT address::text || coalesce(name::text, '') FROM people.addresses JOIN people.recipients"
                                   " USING (tenant_id, recipient_id) WHERE recipient_id = %s", alice)
    assert len(stored) == 2 and not any(b"lice".hex() in row[0] for row in stored)


def test_a_masked_address_leads_to_its_suppressions_by_its_hash(api):
    person = _post(api, {"addresses": [{"channel": "email", "address": "hashed@example.com"}]})
    status, entry = api("POST", "/v1/suppressions", {"address": "Hashed@example.com"})
    assert status == 201, entry
    shown, = api("GET", f"/v1/recipients/{person}")[1]["addresses"]
    assert shown["address"] == "has***@example.com"
    assert api("GET", f"/v1/suppressions?channel=email&address_hash={shown['address_hash']}")[1]["data"] == [entry]
    whole = api("GET", f"/v1/recipients/{person}?reveal=true")[1]["addresses"]
    assert api("PUT", f"/v1/recipients/{person}", {"addresses": whole})[0] == 200, "what was read can be written back"


def test_the_same_identity_is_the_same_recipient_and_a_put_replaces_the_whole_record(api):
    first = _post(api, {"identity_type": "guest", "identity_id": "g-7", "addresses": [{"channel": "email", "address": "g7@example.com"}]})
    assert _post(api, {"identity_type": "guest", "identity_id": "g-7", "addresses": [{"channel": "inapp", "address": "g7"}]}) == first
    shown = api("GET", f"/v1/recipients/{first}")[1]
    assert [a["channel"] for a in shown["addresses"]] == ["inapp"]
    assert api("GET", "/v1/recipients?address=g7%40example.com")[1] == {"data": [], "next": None}
    assert api("PUT", f"/v1/recipients/{first}", {"name": "G"})[0] == 200
    shown = api("GET", f"/v1/recipients/{first}")[1]
    assert shown["addresses"] == [] and "identity_id" not in shown and shown["name"] == "G***"
    given = "rcp_01KAGTQ5M00000000000000077"
    assert api("PUT", f"/v1/recipients/{given}", {"name": "Given"}) == (201, {"id": given})


def test_a_deleted_recipient_is_gone_with_all_that_belonged_to_it(api, people):
    gone = _post(api, {"name": "Gone", "addresses": [{"channel": "email", "address": "gone@example.com"}]})
    assert api("PUT", f"/v1/recipients/{gone}/preferences", [{"category": "marketing", "off": True}])[0] == 200
    assert api("PUT", f"/v1/recipients/{gone}/consents", [{"category": "marketing", "granted": True}])[0] == 200
    assert api("DELETE", f"/v1/recipients/{gone}")[0] == 200
    assert api("GET", f"/v1/recipients/{gone}")[0] == 404 and api("DELETE", f"/v1/recipients/{gone}")[0] == 404
    for table in ("recipients", "addresses", "preferences", "consents"):
        assert people.postgres.query(f"SELECT count(*) FROM people.{table} WHERE recipient_id = %s", gone) == [(0,)], table
    assert api("PUT", f"/v1/recipients/{gone}", {"name": "Back"})[0] == 201
    assert api("GET", f"/v1/recipients/{gone}/preferences")[1] == {"preferences": []}


@pytest.mark.parametrize("body,field", [
    ({"addresses": [{"channel": "email", "address": "no-at-sign"}]}, "addresses[0].address"),
    ({"addresses": [{"channel": "email", "address": "a@example.com"}, {"channel": "sms", "address": "0151 23"}]}, "addresses[1].address"),
    ({"addresses": [{"channel": "email", "address": "Ali***@example.com"}]}, "addresses[0].address"),
    ({"addresses": [{"channel": "email", "address": "a@example.com"}, {"channel": "email", "address": "A@example.com"}]}, "addresses[1]"),
    ({"addresses": [{"address": "a@example.com"}]}, "addresses[0].channel"),
    ({"time_zone": "Europe/Atlantis"}, "time_zone"),
    ({"locale": "en_US"}, "locale"),
    ({"quiet_hours": {"start": "25:00", "end": "07:00"}}, "quiet_hours.start"),
    ({"quiet_hours": {"start": "22:00"}}, "quiet_hours.end"),
    ({"identity_id": "x"}, "identity_type"),
    ({"guardian_id": "rcp_1"}, "guardian_id"),
    ({"shoe_size": 42}, "shoe_size"),
])
def test_a_wrong_record_is_refused_with_the_name_of_its_field(api, body, field):
    status, problem = api("POST", "/v1/recipients", body)
    assert status == 422 and problem["field"] == field and problem["detail"], problem


# ---- preferences and consents ---------------------------------------------------------------------------------------


def test_preferences_are_a_whole_set_and_consents_add_up(api):
    bob = _post(api, {"name": "Bob"})
    wanted = [{"category": "any", "channel": "sms", "off": True},
              {"category": "billing", "channel": "email", "frequency": "weekly", "at": "09:15", "weekday": 5}]
    assert api("PUT", f"/v1/recipients/{bob}/preferences", wanted)[0] == 200
    shown = api("GET", f"/v1/recipients/{bob}/preferences")[1]["preferences"]
    for entry in shown:
        del entry["updated_at"]
    assert shown == [{"category": "any", "channel": "sms", "off": True, "frequency": "immediate"},
                     {"category": "billing", "channel": "email", "off": False, "frequency": "weekly", "at": "09:15", "weekday": 5}]
    assert api("PUT", f"/v1/recipients/{bob}/preferences", {"preferences": shown[1:]})[0] == 200
    assert len(api("GET", f"/v1/recipients/{bob}/preferences")[1]["preferences"]) == 1
    bad = api("PUT", f"/v1/recipients/{bob}/preferences", wanted + [{"category": "billing", "channel": "email"}])
    assert bad[0] == 422 and bad[1]["field"] == "preferences[2].category"
    assert api("PUT", f"/v1/recipients/{bob}/preferences", [{"frequency": "immediate", "at": "08:00"}])[1]["field"] == "preferences[0].at"
    for category in ("marketing", "social"):
        assert api("PUT", f"/v1/recipients/{bob}/consents", [{"category": category, "granted": True, "source": "form v3"}])[0] == 200
    assert api("PUT", f"/v1/recipients/{bob}/consents", [{"category": "social", "granted": False}])[0] == 200
    consents = api("GET", f"/v1/recipients/{bob}/consents")[1]["consents"]
    assert [(c["category"], c["channel"], c["granted"]) for c in consents] == [("marketing", "any", True), ("social", "any", False)]
    assert api("PUT", f"/v1/recipients/{bob}/unsubscription", {"unsubscribed": True})[0] == 200
    assert "unsubscribed_at" in api("GET", f"/v1/recipients/{bob}")[1]
    assert api("PUT", f"/v1/recipients/{bob}/unsubscription", {"unsubscribed": False})[0] == 200
    assert "unsubscribed_at" not in api("GET", f"/v1/recipients/{bob}")[1]
    assert api("PUT", f"/v1/recipients/{UNKNOWN_RECIPIENT}/preferences", [])[0] == 404


# ---- the command line -----------------------------------------------------------------------------------------------


def test_every_recipient_command(people, api):
    made = json.loads(people.cli("recipient", "put", "--identity", "user:cli-1", "--name", "Cleo", "--email", "cleo@example.com",
                                 "--sms", "+4915100000001", "--time-zone", "Europe/Paris", "--quiet-hours", "21:00-06:30", "--json"))
    cleo = made["id"]
    assert json.loads(people.cli("recipient", "get", cleo, "--json"))["quiet_hours"] == {"start": "21:00", "end": "06:30"}
    found = json.loads(people.cli("recipient", "get", "--address", "+4915100000001", "--reveal", "--json"))
    assert [(p["id"], p["name"]) for p in found] == [(cleo, "Cleo")]
    people.cli("recipient", "prefs", cleo, "--set", "billing/email=weekly@09:15/5", "--set", "marketing=off")
    people.cli("recipient", "prefs", cleo, "--set", "marketing=clear", "--set", "social=daily@18:00")
    shown = json.loads(people.cli("recipient", "prefs", cleo, "--json"))["preferences"]
    assert [(p["category"], p["channel"], p["frequency"], p.get("weekday")) for p in shown] == [
        ("billing", "email", "weekly", 5), ("social", "any", "daily", None)]
    people.cli("recipient", "prefs", cleo, "--unsubscribe")
    assert "unsubscribed_at" in people.cli("recipient", "get", cleo)
    people.cli("recipient", "prefs", cleo, "--resubscribe")
    people.cli("recipient", "consent", cleo, "--grant", "marketing/email", "--withdraw", "social", "--source", "call")
    consents = json.loads(people.cli("recipient", "consent", cleo, "--json"))["consents"]
    assert [(c["category"], c["granted"], c["source"]) for c in consents] == [("marketing", True, "call"), ("social", False, "call")]
    people.cli("recipient", "delete", cleo)
    assert people.run_cli("recipient", "get", cleo).returncode == 3
    assert people.run_cli("recipient", "get").returncode == 2
    wrong = people.run_cli("recipient", "put", "--email", "no-at-sign")
    assert wrong.returncode == 2 and "addresses[0].address" in wrong.stderr


def test_tenant_settings_by_command_and_api_are_the_same_entry(people, api):
    people.cli("tenant", "put", "acme", "--time-zone", "Europe/Berlin", "--quiet-hours", "22:00-07:00", "--limit-day", 1000,
               "--recipient-limit-minute", 3, "--over-limit", "suppress", "--guardian-routing", "copy",
               "--physical-address", "1 Main St", "--theme", "logo_url=https://acme.test/l.png")
    shown = json.loads(people.cli("tenant", "show", "--json"))
    assert shown["sender_address"] == "hello@acme.test" and shown["limits"] == {"per_minute": 0, "per_day": 1000}
    wait_until(lambda: api("GET", "/v1/tenant") == (200, shown), 20, "the settings reaching ingest")
    changed = {**shown, "quiet_hours": {"start": "23:00", "end": "06:00"}}
    assert api("PUT", "/v1/tenant", changed)[1] == {**shown, "quiet_hours": {"start": "23:00", "end": "06:00"}}
    assert json.loads(people.cli("tenant", "show", "--json"))["quiet_hours"] == {"start": "23:00", "end": "06:00"}
    for body, field in (({"time_zone": "Nowhere/Land"}, "time_zone"), ({"limits": {"per_day": -1}}, "limits.per_day"),
                        ({"theme": {"Logo": "x"}}, "theme.Logo"), ({"suspended": "yes"}, "suspended"),
                        ({"sender_address": "a b@c"}, "sender_address")):
        status, problem = api("PUT", "/v1/tenant", body)
        assert status == 422 and problem["field"] == field, problem
    assert "--time-zone: " in people.run_cli("tenant", "put", "acme", "--time-zone", "Nowhere/Land").stderr
    assert people.run_cli("tenant", "show", "no-such-tenant").returncode == 3


def test_a_suspension_is_not_lifted_by_a_replica_that_has_not_heard_of_it(people, other):
    """Its reader of CONFIG is taken away, so for some seconds it believes that the tenant is active."""
    shown = json.loads(people.cli("tenant", "show", "globex", "--json"))
    settings = {key: value for key, value in shown.items() if key not in ("tenant", "suspended")}
    assert other("PUT", "/v1/tenant", settings)[0] == 200
    nats = NatsClient(people.nats.port)
    for consumer in json.loads(nats.request("$JS.API.CONSUMER.NAMES.CONFIG"))["consumers"]:
        nats.request(f"$JS.API.CONSUMER.DELETE.CONFIG.{consumer}")
    suspended = messages(people).Tenant.FromString(nats.message("CONFIG", last_by_subj="cfg.tenant.globex.self")[1])
    suspended.suspended = True
    nats.publish("cfg.tenant.globex.self", suspended.SerializeToString())  # as another replica stores it
    assert other("GET", "/v1/tenant")[0] == 200, "it has heard of it already: the test shows nothing"
    status, problem = other("PUT", "/v1/tenant", settings)
    assert status == 403 and problem["type"].endswith("tenant-suspended"), problem
    stored = nats.message("CONFIG", last_by_subj="cfg.tenant.globex.self")[1]
    nats.close()
    assert messages(people).Tenant.FromString(stored).suspended
    wait_until(lambda: other("GET", "/v1/tenant")[0] == 403, 30, "the suspension reaching ingest")
    people.cli("tenant", "put", "globex", "--no-suspended")


# ---- import ---------------------------------------------------------------------------------------------------------


def test_an_import_tells_its_broken_lines_and_stores_the_rest(people, api, tmp_path):
    rows = ["identity_type,identity_id,name,email,consent_marketing"]
    rows += [f'user,csv-{i},"Csv ""{i}"", Jr.",csv{i}@example.com,true' for i in range(2, 1502)]
    rows[700] = 'user,csv-700,"never closed,csv700@example.com,true'  # line 701 of the file
    rows[900] = "user,csv-900,Few"
    rows[1100] = "user,csv-1100,Bad,no-at-sign,true"
    file = tmp_path / "people.csv"
    file.write_text("\n".join(rows) + "\n")
    done = people.run_cli("recipient", "import", file, "--json")
    summary = json.loads(done.stdout)
    assert done.returncode == 1 and (summary["stored"], summary["failed"]) == (1497, 3), summary
    reported = {error["line"]: error for error in summary["errors"]}
    assert set(reported) == {701, 901, 1101} and reported[1101]["field"] == "addresses[0].address"
    assert "quote" in reported[701]["error"] and "3 fields" in reported[901]["error"]
    found = _found(api, "identity_type=user&identity_id=csv-702&reveal=true")
    assert found[0]["name"] == 'Csv "702", Jr.'
    assert api("GET", f"/v1/recipients/{found[0]['id']}/consents")[1]["consents"][0]["source"] == "import"
    again = people.run_cli("recipient", "import", file)
    assert again.returncode == 1 and "line 701:" in again.stderr and "1497 stored, 3 failed" in again.stdout
    assert people.postgres.query("SELECT count(*) FROM people.recipients WHERE identity_id LIKE 'csv-%%'") == [(1497,)]
    unknown = tmp_path / "unknown.csv"
    unknown.write_text("email,shoe_size\na@example.com,42\n")
    refused = people.run_cli("recipient", "import", unknown)
    assert refused.returncode == 1 and "shoe_size" in refused.stderr
    assert people.run_cli("recipient", "import", tmp_path / "people.txt").returncode == 2


def test_ndjson_is_imported_with_preferences_and_each_bad_line_has_its_reason(people, api, tmp_path):
    file = tmp_path / "people.ndjson"
    file.write_text("\n".join([
        json.dumps({"addresses": [{"channel": "email", "address": "nd1@example.com"}],
                    "preferences": [{"category": "marketing", "off": True}]}),
        "", "{not json", json.dumps({"name": "who"}), json.dumps({"id": "rcp_01KAGTQ5M00000000000000042", "name": "x" * 70000}),
        json.dumps({"id": "rcp_01KAGTQ5M00000000000000042", "name": "Deep Thought"})]))
    done = people.run_cli("recipient", "import", file, "--json")
    summary = json.loads(done.stdout)
    assert done.returncode == 1 and (summary["stored"], summary["failed"]) == (2, 3), summary
    assert sorted(error["line"] for error in summary["errors"]) == [3, 4, 5]
    (nd1,) = _found(api, "address=nd1%40example.com")
    assert api("GET", f"/v1/recipients/{nd1['id']}/preferences")[1]["preferences"][0]["off"] is True
    assert api("GET", "/v1/recipients/rcp_01KAGTQ5M00000000000000042")[1]["name"] == "D***"


# ---- what breaks ----------------------------------------------------------------------------------------------------


def test_with_nats_away_a_write_is_503_and_a_read_goes_on(people, api):
    dora = _post(api, {"name": "Dora"})
    people.nats.kill()
    try:
        wait_until(lambda: api("PUT", f"/v1/recipients/{dora}", {"name": "D"})[0] == 503, 20, "the 503")
        assert api("GET", f"/v1/recipients/{dora}")[0] == 200
    finally:
        people.nats.start()
    wait_until(lambda: api("PUT", f"/v1/recipients/{dora}", {"name": "Else"})[0] == 200, 30, "writing again")
    assert api("GET", f"/v1/recipients/{dora}")[1]["name"] == "E***"


def test_with_postgres_away_gateway_manages_what_is_in_config(people, api):
    fay = _post(api, {"name": "Fay"})
    people.postgres.kill()
    try:
        assert api("POST", "/v1/suppressions", {"address": "away@example.com"})[0] == 201
        assert api("PUT", "/v1/triggers/away", {"event_type": "away", "template": "welcome", "resolver": "address:to"})[0] in (200, 201)
        assert api("GET", "/v1/templates/welcome")[0] == 200
        assert people.run_cli("tenant", "put", "globex", "--name", "Away").returncode == 0
        assert api("GET", f"/v1/recipients/{fay}")[0] == 503
        wait_until(lambda: people.services["gateway"].get("/readyz")[0] == 503, 10, "gateway saying that it is not ready")
    finally:
        people.postgres.start()
    wait_until(lambda: api("GET", f"/v1/recipients/{fay}")[0] == 200, 30, "recipients again")


def test_with_ingest_away_a_write_is_stored_and_shows_once_it_folds_again(people, api):
    gil = _post(api, {"name": "Gil"})
    assert people.services["ingest"].stop() == 0
    try:
        assert api("PUT", f"/v1/recipients/{gil}", {"name": "Karl"}) == (200, {"id": gil})
        assert api("GET", f"/v1/recipients/{gil}")[1]["name"] == "G***"
    finally:
        people.services["ingest"].start()
    wait_until(lambda: api("GET", f"/v1/recipients/{gil}")[1]["name"] == "K***", 30, "what was stored meanwhile")


def test_killing_the_projecting_process_within_an_import_loses_no_recipient_and_the_stand_by_takes_over(people, api, tmp_path):
    total = 6000
    file = tmp_path / "many.ndjson"
    file.write_text("".join(json.dumps({
        "identity_type": "user", "identity_id": f"many-{i}", "name": f"Many {i}",
        "addresses": [{"channel": "email", "address": f"many{i}@example.com"}]}) + "\n" for i in range(total)))
    second_port = free_port()
    second = people.service("ingest", "-second", STENTOR_INGEST_PORT=0).start()
    other = people.service("gateway", "-second", STENTOR_GATEWAY_PORT=second_port).start()
    first, gateway = people.services["ingest"], people.services["gateway"]
    wait_until(lambda: first.metric("stentor_ingest_people_active") == 1 and second.metric("stentor_ingest_people_active") == 0, 20, "one projector")
    count = "SELECT count(*) FROM people.recipients WHERE identity_id LIKE 'many-%%'"
    ends = []
    load = threading.Thread(target=lambda: ends.append(people.run_cli("recipient", "import", file, "--json", timeout=200)))
    load.start()
    try:
        wait_until(lambda: people.postgres.query(count)[0][0] >= 500, 60, "the import's beginning")
        first.kill()  # the one that projects
        gateway.kill()  # the one that the import speaks to
        wait_until(lambda: second.metric("stentor_ingest_people_active") == 1, 60, "the stand-by taking over")
        first.start()
        gateway.start()
        load.join(200)
        summary = json.loads(ends[0].stdout)
        assert ends[0].returncode == 0 and (summary["stored"], summary["failed"]) == (total, 0), ends[0].stderr
        wait_until(lambda: people.postgres.query(count)[0][0] == total, 30, f"all {total} in the tables")
        assert people.postgres.query("SELECT count(*) FROM people.addresses JOIN people.recipients USING (tenant_id, recipient_id)"
                                     " WHERE identity_id LIKE 'many-%%'") == [(total,)]
        # What one gateway stores, the stand-by has folded, and every gateway shows it at once.
        assert first.metric("stentor_ingest_people_active") == 0
        late = _post(api, {"name": "Late"})
        assert api("GET", f"/v1/recipients/{late}")[0] == 200
        assert Api(second_port, people.key)("GET", f"/v1/recipients/{late}")[0] == 200
    finally:
        load.join(200)
        assert (second.stop(), other.stop()) == (0, 0)
        wait_until(lambda: first.metric("stentor_ingest_people_active") == 1, 30, "the first projecting again")
