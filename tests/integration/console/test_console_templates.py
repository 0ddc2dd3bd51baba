# SPDX-License-Identifier: Apache-2.0
"""Templates at the console, in a real browser: list, previews that run and load nothing, differences, a new version, its life."""
import time

import pytest

from tests.harness.browser import Site, need
from tests.harness.browser.console import HOSTILE, Console
from tests.harness.pipeline import TENANT
from tests.integration.sending.test_templates import locale, publish


@pytest.fixture(scope="module")
def site():
    made = Site()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def console(pipeline, site):
    need()
    locales = [locale("en", subject="Bill {{n}}", html="<h1>Bill {{n}}</h1><p>Thank you, {{name}}</p>", text="Bill {{n}}"),
               locale("fa", subject="صورتحساب {{n}}", html="<p>سلام {{name}}</p>", text="سلام", direction="rtl")]
    publish(pipeline, "look", version="1.0.0", locales=locales[:1], sample={"n": 7, "name": "Alice"})
    publish(pipeline, "look", version="1.1.0", locales=locales, sample={"n": 8, "name": "Alice"})
    evil = f"<p id=shown>There</p><script>top.hurt=1;parent.hurt=1</script><img src='{site.origin}/spy.png' onerror='top.hurt=1'>" \
           f"<link rel=stylesheet href='{site.origin}/spy.css'><iframe src='{site.origin}/spy.html'></iframe><a href='javascript:top.hurt=1' target=_top>go</a>"
    evil += f"<link rel=preconnect href='{site.origin}'><div><template shadowrootmode=open><link rel=preconnect href='{site.origin}'></template></div>" \
            f"<a href='{site.origin}/pressed' target=_blank>press</a><svg width=9 height=9><a id=drawn href='{site.origin}/drawn'><text y=9>x</text></a></svg>"
    publish(pipeline, "evil", locales=[locale("en", subject=HOSTILE, html=evil, text=HOSTILE)], sample={HOSTILE: HOSTILE}, variables=[])
    with Console(pipeline) as browser:
        yield browser.sign_in("--name", "tess").tenant(TENANT)


def row(console, key):
    return console.find("[aria-label=Templates] tbody tr", key)


def test_the_list_has_each_key_and_opens_by_keys_alone(console):
    console.go("#/templates", "Templates")
    row(console, "look")
    console.sound()
    console.fill("Key has", "look")
    assert [text.split()[0] for text in console.texts("[aria-label=Templates] tbody tr")] == ["look"]
    console.run("document.querySelector('[aria-label=Templates] tbody tr').focus()")
    console.press("ENTER")
    console.find("h1", "look")
    assert console.run("return location.hash").startswith("#/templates/look?channel=email")


def inner(console, title, act):
    """What `act` returns within the sandbox that shows the content."""
    outer = console.find(f"iframe[title='{title}']")
    console.driver.switch_to.frame(outer)
    try:
        console.driver.switch_to.frame(console.driver.find_element("css selector", "iframe"))
        return act(console.driver)
    finally:
        console.driver.switch_to.default_content()


def shown(console, title, text):
    console.until(lambda: text in inner(console, title, lambda driver: driver.find_element("css selector", "body").text), f"{text} in {title}")


def look(console, key="look"):
    """The template's page, loaded: the list stands between it and what was there before."""
    console.go("#/templates", "Templates")
    row(console, key)
    console.go(f"#/templates/{key}", key)


def test_every_locale_is_previewed_at_widths_and_as_text(console):
    look(console)
    shown(console, "Content in en", "Bill 8")
    shown(console, "Content in fa", "سلام Alice")
    console.find("section[aria-label='Preview in fa'] h2", "right to left")
    console.fill("Width", "320")
    console.until(lambda: console.find("iframe[title='Content in en']").size["width"] <= 324, "it is narrow")
    console.sound()
    console.fill("Width", "text")
    console.find("pre[aria-label='Text in en']", "Bill 8")
    console.fill("Width", "")
    console.find("summary", "Data").click()
    console.fill("Data of the preview", '{"n": 99, "name": "Bob"}')
    shown(console, "Content in en", "Bill 99")
    console.fill("Data of the preview", "{")
    assert console.find(".wrong").text
    console.fill("Data of the preview", '{"n": 1}')


def test_what_a_template_tries_to_run_or_load_in_its_preview_is_refused(console, site):
    console.expected += ["Content Security Policy", "sandbox", "ERR_BLOCKED", "violates"]
    look(console, "evil")
    shown(console, "Content in en", "There")
    inner(console, "Content in en", lambda driver: [driver.find_element("link text", name).click() for name in ("go", "press")])
    time.sleep(1)  # what would have been loaded meanwhile
    assert console.run("return window.hurt") is None and site.asked == [] and site.callers == 0
    shown(console, "Content in en", "There")
    assert inner(console, "Content in en", lambda driver: driver.find_element("link text", "press").get_attribute("title")) == f"{site.origin}/pressed"
    assert HOSTILE in console.find("section[aria-label='Preview in en'] dd").text
    console.sound()
    console.errors()
    del console.expected[-4:]


def test_two_versions_are_compared_line_by_line(console):
    look(console)
    console.button("Differences").click()
    console.find("section h2", "locales[fa]")
    console.sound()
    assert console.field("From version").get_property("value") == "1.0.0"


def test_a_new_version_is_written_previewed_published_and_activated(console):
    look(console)
    console.button("New version").click()
    console.fill("Subject (en)", "Your bill {{n}}")
    console.until(lambda: any("Your bill 8" in text for text in console.texts("section[aria-label='Preview in en'] dd")), "the preview follows")
    editor = console.find(".cm-content")
    assert "<h1>Bill" in editor.text
    console.run("arguments[0].focus()", editor)
    console.press("<p>first</p>")
    shown(console, "Content in en", "first")
    console.sound()
    console.button("Publish as a draft").click()
    console.find("h1 .pill", "draft")
    console.button("Activate").click()
    console.find("dialog", "New notifications take this version")
    console.press("ESCAPE")
    console.until(lambda: not console.texts("dialog"), "Escape closes it")
    console.button("Activate").click()
    console.until(lambda: [b for b in console.all("dialog button.main")], "the dialog")[0].click()
    console.find("h1 .pill", "active")
    assert console.run("return fetch('/v1/templates/look', {headers: {'Stentor-Tenant': arguments[0]}}).then((answer) => answer.json())", TENANT)["version"] == "1.1.1"


def test_a_refused_version_names_the_field_and_nothing_that_was_typed_is_lost(console):
    with console.refused():  # the preview is refused as well, and may be answered late
        console.go("#/templates?new=true", "New template")
        console.fill("Key", "broken")
        console.fill("Text (en)", "{{#if}")
        console.button("Publish as a draft").click()
        assert "locale 'en': text: line 1" in console.find("form [role=alert]").text
        console.find("section[aria-label='Preview in en'] [role=alert]", "line 1")
        assert console.field("Text (en)").get_property("value") == "{{#if}"
        console.sound()


def test_a_tenant_without_templates_is_told_so_and_a_gateway_that_is_away_too(console, pipeline):
    console.tenant("empty-templates")
    console.go("#/templates", "Templates")
    console.find(".empty", "There is no template")
    console.tenant(TENANT)
    with console.without("*/v1/templates*"):
        console.go("#/live", "Live")
        console.go("#/templates", "Templates")
        console.alert("does not answer")
    console.button("Try again").click()
    row(console, "look")


def test_a_version_is_sent_once_and_the_notification_is_a_click_away(console):
    look(console)
    console.button("Test").click()
    console.fill("To", "tess@example.com")
    console.sound()
    console.button("Send a test").click()
    console.find(".notice.good a", "ntf_").click()
    console.find("h1", "Find")


def test_a_version_is_tried_on_what_was_sent(console, pipeline):
    sent = pipeline.post({"to": "shadow@example.com", "template": "look", "template_version": "1.0.0", "variables": {"n": 3, "name": "Zoltan"}})[2]["id"]
    assert pipeline.status(sent, wait="sent")
    look(console)
    console.button("Shadow").click()
    console.fill("Days", "1")
    console.button("Compare").click()
    console.find("section[aria-label=Shadow] .pill", "done", 60)
    console.find("section[aria-label=Shadow] dt", "Different")
    assert "Zoltan" not in console.texts("section[aria-label=Shadow]")[0], "values are not shown"
    console.sound()
