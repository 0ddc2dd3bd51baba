# SPDX-License-Identifier: Apache-2.0
"""The console's frame in a real browser: who is signed in and as what, tenants, screens, the display, what its pages may do; and Live."""
import gzip
import http.client
import json
import re
import urllib.request

import pytest

from tests.harness.browser import need
from tests.harness.browser.console import HOSTILE, REFUSED, Console
from tests.harness.pipeline import TENANT
from tests.harness.processes import HOME


@pytest.fixture(scope="module")
def console(pipeline):
    need()
    with Console(pipeline) as browser:
        yield browser.sign_in("--name", "olga").tenant(TENANT)


def answer(pipeline, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", pipeline.api_port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        got = connection.getresponse()
        return got.status, dict(got.getheaders()), got.read()
    finally:
        connection.close()


def policy_of(headers):
    return dict(each.strip().split(" ", 1) for each in headers["Content-Security-Policy"].split(";"))


def test_the_page_runs_its_own_scripts_alone_and_a_preview_runs_and_loads_nothing(pipeline):
    status, headers, page = answer(pipeline, "/console/")
    assert status == 200 and page.startswith(b"<!DOCTYPE html>") and answer(pipeline, "/console")[0] in (200, 301)
    policy = policy_of(headers)
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["style-src"] == "'self'" and "unsafe" not in str(policy)
    assert policy["frame-ancestors"] == policy["form-action"] == "'none'" and headers["Cache-Control"] == "no-cache"
    frame = policy_of(answer(pipeline, "/console/preview")[1])
    assert frame["default-src"] == "'none'" and "script-src" not in frame and frame["img-src"] == "data:" and frame["frame-ancestors"] == "'self'"


def test_the_first_load_is_at_most_60_kilobytes(console):
    console.go("#/live", "Live")
    console.find("canvas")  # uPlot too
    loaded = console.run("return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
                         ".filter((each) => each.name.includes('/console/')).map((each) => [each.name, each.transferSize || each.encodedBodySize, each.decodedBodySize])")
    assert len(loaded) >= 5
    assert sum(size for _, size, _ in loaded) <= 60_000, loaded
    assert all(size < whole for name, size, whole in loaded if whole > 2000), f"compressed: {loaded}"


def test_someone_who_is_not_signed_in_learns_how_to(pipeline):
    need()
    with Console(pipeline) as stranger:
        stranger.expected.append(REFUSED)  # GET /v1/me
        stranger.open(f"http://127.0.0.1:{pipeline.api_port}/console/#/find")
        stranger.find("pre", "stentor console login")
        assert not stranger.all("nav")
        stranger.sound()


def test_a_link_asks_before_it_signs_in_and_leads_to_its_screen(pipeline):
    """Its page can run no script; over plain HTTP."""
    need()
    with Console(pipeline) as browser:
        for name, present in ((HOSTILE[:40], None), ("other", HOSTILE[:40])):
            url = json.loads(pipeline.cli("console", "login", "--json", "--name", name, tenant=""))["url"]
            browser.open(f"{url}#/find?tenant={TENANT}")
            browser.find("h1", "Sign in?")
            said = browser.find("main").text
            assert f"signs you in as {name}," in said
            assert (f"You are signed in here as {present}." in said) == (present is not None)
            browser.sound()
            browser.press("TAB")
            assert browser.focused().text == "Sign in"
            browser.press("ENTER")
            browser.find("h1", "Find")
            assert browser.run("return document.querySelector('#tenant').value") == TENANT
            assert browser.run("return location.pathname") == "/console/"
            assert browser.texts("header bdi") == [name]


def test_the_person_sees_the_screens_of_its_role_in_its_tenant(pipeline):
    need()
    with Console(pipeline) as support:
        support.sign_in("--role", "template-writer", "--tenant", TENANT, "--name", HOSTILE[:20])
        support.find("nav[aria-label=Screens]")
        shown = support.texts("nav[aria-label=Screens] a")
        assert "Templates" in shown and "Find" not in shown and "Health" not in shown
        assert support.texts(".tenant strong") == [TENANT]
        support.run("location.hash = '#/health'")
        support.find("h1", "Not here")
        assert "template-writer" in support.texts("main")[0]
        support.find("summary", HOSTILE[:10])
        support.sound()


def test_signing_out_ends_the_session_on_the_server(pipeline):
    need()
    with Console(pipeline) as browser:
        browser.sign_in("--name", "ada").tenant(TENANT)
        browser.expected.append(REFUSED)
        browser.find("summary", "ada").click()
        browser.button("Sign out").click()
        browser.find("pre", "stentor console login")
        assert browser.run("return fetch('/v1/me').then((answer) => answer.status)") == 401


def test_a_session_that_ends_meanwhile_leads_to_the_sign_in(pipeline):
    need()
    with Console(pipeline) as browser:
        browser.sign_in("--name", "eve").tenant(TENANT)
        browser.expected.append(REFUSED)
        session = browser.run("return fetch('/v1/me').then((answer) => answer.json()).then(({session_id}) => session_id)")
        assert pipeline.run_cli("console", "revoke", session, tenant="").returncode == 0
        browser.run("location.reload()")
        browser.find("pre", "stentor console login")


def test_at_700_pixels_the_screens_stand_in_one_row(pipeline):
    need()
    with Console(pipeline, (700, 900)) as narrow:
        narrow.sign_in("--name", "nora").tenant(TENANT)
        for place, heading in (("#/suppressions", "Suppressions"), ("#/find", "Find"), ("#/dead", "Dead letters")):
            narrow.go(place, heading)
            tops = narrow.run("return [...document.querySelectorAll('nav a')].map((each) => each.offsetTop)")
            assert len(tops) == 8 and len(set(tops)) == 1, tops
            assert narrow.run("const nav = document.querySelector('nav'); return nav.scrollWidth <= nav.clientWidth"), "all are seen"
            narrow.sound()


def test_every_reason_code_has_words():
    """Of those that `why` has a sentence for, and of a suppression list; a code without words is shown as it is."""
    words = (HOME / "services/gateway/web/console/words.js").read_text()
    known = set(re.findall(r"(\w+): \"", words[words.index("const REASONS"):words.index("};")]))
    summary = (HOME / "services/gateway/why/why_summary.c").read_text()
    codes = set(re.findall(r'^    \{"([a-z_]+)", "', summary, re.M))
    reasons = re.search(r"SuppressionReason: \{enum: \[(.*?)\]", (HOME / "services/gateway/openapi/suppressions.yaml").read_text()).group(1).split(", ")
    listed = json.loads(re.search(r"SUPPRESSION_REASONS = (\[.*?\]);", words).group(1))
    assert len(codes) > 25 and codes | set(reasons) <= known, (codes | set(reasons)) - known
    assert set(listed) == set(reasons)


def test_keys_alone_reach_every_screen(console):
    console.go("#/live", "Live")
    console.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    console.press("TAB")
    assert console.focused().text == "To the content"
    console.press("ENTER")
    assert console.focused().tag_name == "main"
    screens = console.texts("nav[aria-label=Screens] a")
    console.run("document.querySelector('nav a').focus()")
    for name in screens:
        assert console.focused().text == name
        console.press("TAB")
    console.run("document.querySelectorAll('nav a')[1].focus()")
    console.press("ENTER")
    console.until(lambda: console.texts("nav a[aria-current]") == [screens[1]], "the second screen")


def test_the_display_is_kept_in_the_browser(console):
    console.find("summary", "Display").click()
    console.fill("Colours", "dark")
    console.fill("Direction", "rtl")
    dark = console.run("return getComputedStyle(document.body).backgroundColor")
    console.run("location.reload()")
    console.find("h1")
    assert console.run("return [document.documentElement.dir, getComputedStyle(document.body).backgroundColor]") == ["rtl", dark]
    console.find("summary", "Display").click()
    console.fill("Colours", "system")
    console.fill("Direction", "ltr")
    assert console.run("return getComputedStyle(document.body).backgroundColor") != dark


# ---- Live ----

def test_live_shows_the_pipelines_stages_and_what_a_stage_runs_on(console):
    console.go("#/live", "Live")
    console.find(".stages li", "Accept")
    assert len(console.all(".stages li")) == 7
    console.until(lambda: any("ready" in text for text in console.texts(".stages li")), "a heartbeat")
    console.button("Render").click()
    console.find("[aria-label=Processes] td", "renderer")
    console.find("[aria-label=Consumers] td", "renderer")
    assert "stage=render" in console.run("return location.hash")
    console.sound()
    console.button("Render").click()


def test_live_shows_a_status_as_it_comes_and_leads_to_its_notification(console, pipeline):
    console.go("#/live", "Live")
    console.find(".empty", "Nothing has happened")
    sent = pipeline.send("live@example.com")
    row = console.find("[aria-label=Statuses] tbody tr", sent)
    console.until(lambda: any("sent" in text and sent in text for text in console.texts("[aria-label=Statuses] tbody tr")), "sent")
    console.button("Hold").click()
    later = pipeline.send("held@example.com")
    console.find("button", "came meanwhile")
    console.until(lambda: "(0 came" not in console.find("button", "Go on").text, "it is counted")
    assert not any(later in text for text in console.texts("[aria-label=Statuses] td"))
    console.button("Go on").click()
    console.fill("Status", "bounced")
    console.find(".empty")
    assert row is not None and "status=bounced" in console.run("return location.hash")
    console.fill("Status", "")


def test_live_says_when_the_stream_is_lost_and_comes_back(console, pipeline):
    console.go("#/live", "Live")
    console.find(".stages li")
    console.expected += ["net::ERR_", "status of 50"]
    gateway = pipeline.services["gateway"]
    gateway.stop()
    console.find(".notice", "The stream was lost")
    gateway.start()
    console.until(lambda: not console.texts(".notice"), "it is back", 30)
    console.errors()
    del console.expected[-2:]


def test_the_files_are_kept_by_the_browser_and_sent_compressed(pipeline):
    page = answer(pipeline, "/console/")[2].decode()
    script = next(part.split('"')[0] for part in page.split('src="')[1:])
    status, headers, packed = answer(pipeline, script, **{"Accept-Encoding": "gzip"})
    assert status == 200 and "immutable" in headers["Cache-Control"] and headers["Content-Encoding"] == "gzip" and gzip.decompress(packed)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{pipeline.api_port}/console/screens/live.js")
    assert refused.value.code == 404
