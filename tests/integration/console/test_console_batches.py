# SPDX-License-Identifier: Apache-2.0
"""The console's batches in a real browser: the list, one as it runs, its commands, its members' broken lines, what became of its notifications."""
import json
import uuid

import pytest

from tests.harness.browser import need
from tests.harness.browser.console import HOSTILE, REFUSED, Console
from tests.harness.length import amount
from tests.harness.pipeline import TENANT
from tests.harness.processes import wait_until
from tests.integration.sending.test_batches import create, fill, ids_of, show, tell

MANY = amount(4_000, 100_000)
OF_BATCH = 5  # common/find/find_key.h


@pytest.fixture(scope="module")
def console(pipeline):
    need()
    with Console(pipeline) as browser:
        yield browser.sign_in("--name", "olga").tenant(TENANT)


def named(word):
    """A batch's name, one line, that no other has, as a stranger would write it."""
    return f"{word} {uuid.uuid4().hex[:6]} {HOSTILE}"


def ended(pipeline, batch, **totals):
    wait_until(lambda: show(pipeline, batch)["totals"] == totals, 30, f"{totals}")


def confirm(console, button, yes):
    console.button(button).click()
    console.find("dialog button", yes).click()


def offered(console):
    return [text for text in console.texts(".acts button") if text]


# ---- the list -------------------------------------------------------------------------------------------------------


def test_a_tenant_without_batches_is_told_how_one_is_made(console, pipeline):
    empty = f"empty-{uuid.uuid4().hex[:6]}"
    pipeline.cli("tenant", "put", empty, tenant=empty)
    console.go("#/live", "Live")
    console.tenant(empty)
    console.go("#/batches", "Batches")
    console.find(".empty", "stentor batch create")
    console.tenant(TENANT)


def test_the_list_shows_each_batch_and_leads_to_it(console, pipeline):
    name = named("spring")
    batch = fill(pipeline, create(pipeline, name=name, rate_per_second=7), 3)
    console.go("#/live", "Live")
    console.go("#/batches", "Batches")
    row = console.find("[aria-label=Batches] tbody tr", name[:15])
    assert "draft" in row.text and "welcome 1.0.0" in row.text and "\n7\n" in f"{row.text}\n".replace(" ", "\n")
    console.sound()
    console.driver.set_window_size(700, 900)
    console.go(f"#/batches/{batch}", name[:15])
    assert console.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "wider than a small window"
    console.driver.set_window_size(1300, 900)
    console.go("#/batches", "Batches")
    console.fill("Status", "completed")
    console.until(lambda: not any(name[:15] in text for text in console.texts("[aria-label=Batches] tbody tr")), "drafts are not completed")
    console.fill("Status", "draft")
    console.find("[aria-label=Batches] tbody tr", name[:15])
    console.run("[...document.querySelectorAll('[aria-label=Batches] tbody tr')].find((row) => row.textContent.includes(arguments[0])).focus()", name[:15])
    console.press("ENTER")
    console.find("h1", name[:15])
    assert batch in console.run("return location.hash")


# ---- one ------------------------------------------------------------------------------------------------------------


def test_a_file_of_members_is_taken_and_its_broken_lines_are_named(console, pipeline, tmp_path):
    batch = create(pipeline, name=named("members"))
    file = tmp_path / "members.ndjson"
    good = [json.dumps({"to": f"file{i}@example.com", "variables": {"name": "F"}}) for i in range(10_001)]
    bad = [json.dumps({"to": HOSTILE}), json.dumps({"to": "x@example.com", HOSTILE: 1}), "{"]
    file.write_text("\n".join([good[0], *bad, *good[1:]]))  # no line end at its end
    console.go(f"#/batches/{batch}", "members")
    console.find(".acts", "It has no members yet.")
    assert not console.button("Start …").is_enabled()
    console.run("return document.getElementById('members-file')").send_keys(str(file))
    console.button("Upload").click()
    console.find(".notice.good", "10,001 added in 2 parts", 30)
    console.find(".notice.warn", "3 broken lines were not taken")
    rows = console.texts("[aria-label='Broken lines'] tbody tr")
    assert [row.split()[0] for row in rows] == ["2", "3", "4"] and "img src=x" in "".join(rows)
    console.until(lambda: any("10,001 members" in text for text in console.texts("main p")), "the batch as it is now")
    console.sound()
    console.button("Upload").click()
    console.find(".notice.good", "2 were there already", 30)
    assert (show(pipeline, batch)["members"], show(pipeline, batch)["broken_lines"]) == (10_001, 3)
    console.expected.append(REFUSED)
    file.write_text(good[7] + "\n")
    console.run("return document.getElementById('members-file')").send_keys(str(file))
    console.button("Upload").click()
    console.alert("use another part number")
    console.errors()
    console.expected.remove(REFUSED)


def test_a_batch_starts_pauses_goes_on_and_is_cancelled(console, pipeline):
    batch = fill(pipeline, create(pipeline, name=named("life"), rate_per_second=5), 100, "life")
    console.go(f"#/batches/{batch}", "life")
    assert offered(console) == ["Start …", "Schedule …", "Cancel the batch …"]
    console.button("Start …").click()
    console.find("dialog", "goes to 100 members, 5 a second")
    console.sound()
    console.find("dialog button", "Start").click()
    console.find(".pill", "running")
    console.find("main p", "left")  # eta_seconds
    console.until(lambda: show(pipeline, batch)["accepted"] > 0, "members are accepted")
    console.button("Pause").click()
    console.find(".pill", "paused")
    assert offered(console) == ["Resume", "Cancel the batch …"] and show(pipeline, batch)["paused"]
    console.button("Resume").click()
    console.button("Pause")
    console.button("Cancel the batch …").click()
    console.find("dialog", "are sent all the same; nothing more is made")
    console.find("dialog button", "Cancel the batch").click()
    console.find(".pill", "cancelled")
    assert offered(console) == [] and show(pipeline, batch)["status"] == "cancelled"


def test_a_batch_is_scheduled_for_a_time_of_the_readers_own_zone(console, pipeline):
    batch = fill(pipeline, create(pipeline, name=named("later")), 2, "later")
    console.go(f"#/batches/{batch}", "later")
    console.button("Schedule …").click()
    assert not console.find("dialog button", "Schedule").is_enabled()
    field = console.field("Start")
    console.run("arguments[0].value = '2027-03-01T09:30'; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", field)
    console.find("dialog button", "Schedule").click()
    console.find(".pill", "scheduled")
    wanted = console.run("return new Date('2027-03-01T09:30').toISOString()")
    assert show(pipeline, batch)["scheduled_for"][:19] == wanted[:19]
    console.button("Schedule …").click()
    assert console.field("Start").get_property("value") == "2027-03-01T09:30"
    console.expected.append(REFUSED)
    console.run("arguments[0].value = '2020-03-01T09:30'; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", console.field("Start"))
    console.find("dialog button", "Schedule").click()
    console.find("dialog .wrong", "in the past")
    console.press("ESCAPE")
    console.errors()
    console.expected.remove(REFUSED)


def test_totals_lead_to_the_notifications_of_a_status_and_these_to_find(console, pipeline):
    batch = fill(pipeline, create(pipeline, name=named("ends")), 6, f"ends{uuid.uuid4().hex[:4]}")
    pipeline.mailbox.answer(f"550 5.7.1 {HOSTILE}", times=2)
    tell(pipeline, batch, "start")
    ended(pipeline, batch, sent=4, failed=2)
    indexed = "SELECT count(DISTINCT notification_id) FROM find.entries WHERE notification_id = ANY(%s)"
    wait_until(lambda: pipeline.postgres.query(indexed, ids_of(pipeline, batch))[0][0] == 6, 20, "the index")  # until then the batch has no list
    console.go(f"#/batches/{batch}", "ends")
    console.find("[aria-label='Totals by status'] tr", "sent")
    assert [text.split()[-2:] for text in console.texts("[aria-label='Totals by status'] tr")] == [["sent", "4"], ["failed", "2"]]
    rows = "[aria-label='Notifications of the batch'] tbody tr"
    console.until(lambda: console.button("Look again").click() or len(console.texts(rows)) == 6, "the index has all", 20)
    console.find("[aria-label='Totals by status'] button", "failed").click()
    console.until(lambda: len(console.texts(rows)) == 2, "the failed ones")
    assert "status=failed" in console.run("return location.hash") and all("img src=x" in text for text in console.texts(rows))
    console.sound()
    one = console.run("return document.querySelector(arguments[0] + ' .mono').textContent", rows)
    console.find(rows, one).click()
    console.until(lambda: one in console.run("return location.hash"), "its own place")
    assert console.run("return location.hash").startswith("#/find/")


# ---- who, and what goes wrong ---------------------------------------------------------------------------------------


def test_a_role_that_may_read_is_offered_no_command(pipeline):
    batch = fill(pipeline, create(pipeline, name=named("read")), 2, "read")
    with Console(pipeline) as viewer:
        viewer.sign_in("--role", "viewer", "--tenant", TENANT)
        viewer.go(f"#/batches/{batch}", "read")
        viewer.find("main p", "2 members")
        assert offered(viewer) == [] and not viewer.all("#members-file")


def test_without_the_api_the_screen_says_so_and_a_strangers_id_is_not_found(console, pipeline):
    console.go("#/live", "Live")
    with console.without("*/v1/batches*"):
        console.go("#/batches", "Batches")
        console.alert("No connection")
    console.button("Try again").click()
    console.find("[aria-label=Batches] tbody tr")
    console.expected.append(REFUSED)
    console.go("#/batches/dbt_01M8EF02TMR8AVVGAPE42FERA3", "Batch")
    console.alert("Not found")
    console.go("#/live", "Live")
    console.errors()
    console.expected.remove(REFUSED)


def test_a_command_that_comes_too_late_says_why(console, pipeline):
    batch = fill(pipeline, create(pipeline, name=named("late")), 2, "late")
    console.go(f"#/batches/{batch}", "late")
    console.button("Start …").click()
    tell(pipeline, batch, "cancel")
    console.expected.append(REFUSED)
    console.find("dialog button", "Start").click()
    console.find("dialog [role=alert]", "a cancelled batch does not take the command start")
    console.press("ESCAPE")
    console.find(".pill", "cancelled")
    console.errors()
    console.expected.remove(REFUSED)


# ---- a hundred thousand ---------------------------------------------------------------------------------------------


def test_a_hundred_thousand_notifications_are_a_scroll_away(console, pipeline):
    batch = fill(pipeline, create(pipeline, name=named("many")), 1, f"many{uuid.uuid4().hex[:4]}")
    tell(pipeline, batch, "start")
    ended(pipeline, batch, sent=1)
    first = ids_of(pipeline, batch)[0]
    wait_until(lambda: pipeline.postgres.query("SELECT count(*) FROM find.entries WHERE notification_id = %s", first)[0][0], 20, "the index")
    # The index's entry of the one, of so many more: an entry's key is of the tenant and the batch.
    pipeline.postgres.query(
        "INSERT INTO find.entries (tenant_id, kind, key, created_at, notification_id)"
        " SELECT e.tenant_id, e.kind, e.key, e.created_at, left(e.notification_id, 22) || lpad(i::text, 8, '0')"
        " FROM find.entries e, generate_series(1, %s) i WHERE e.notification_id = %s AND kind = %s RETURNING 1", MANY, first, OF_BATCH)
    try:
        console.go("#/live", "Live")
        rows = "[aria-label='Notifications of the batch'] tbody tr"
        took = console.run_until_shown(f"#/batches/{batch}", rows)
        print(f"the first notifications of {MANY:,} are there after {took:.0f} ms")
        assert took < 10_000
        for _ in range(5):
            assert console.run("return document.querySelectorAll(arguments[0]).length", rows) < 150
            box = "return document.querySelector(\"[aria-label='Notifications of the batch']\")"
            loaded = console.run(f"{box}.scrollHeight")
            console.run(f"{box}.scrollTop = {loaded}")
            console.until(lambda: console.run(f"{box}.scrollHeight") > loaded, "the next page")
    finally:
        pipeline.postgres.query("DELETE FROM find.entries WHERE notification_id LIKE %s AND notification_id <> %s RETURNING 1", first[:22] + "%", first)
