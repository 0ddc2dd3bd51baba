# SPDX-License-Identifier: Apache-2.0
"""<stentor-inbox> and <stentor-preferences> in a real browser: on a page of the tenant's own origin, over plain HTTP, with the real gateway behind."""
import gzip
import http.client
import json
import uuid

import pytest

from tests.harness.browser import Browser, Site, need
from tests.harness.processes import HOME, free_port, wait_until
from tests.integration.inbox.test_inapp import Client, new_user
from tests.integration.inbox.test_inbox_preferences import choice, make_recipient
from tests.integration.sending.test_templates import locale, publish

HOSTILE = "<img src=x onerror=\"window.hurt=1\"><script>window.hurt=1</script>"
POLICY = "default-src 'none'; script-src 'self' {api}; connect-src 'self' {api}; style-src 'self'"


class World:
    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.site = Site()
        self.port = free_port()
        self.api = f"http://127.0.0.1:{self.port}"
        self.site.headers = {"Content-Security-Policy": POLICY.format(api=self.api)}
        self.gateway = pipeline.service("gateway", "pages", STENTOR_GATEWAY_PORT=self.port, STENTOR_GATEWAY_INBOX_ORIGINS=self.site.origin,
                                        STENTOR_GATEWAY_INBOX_DEMO="true").start()
        publish(pipeline, "inbox-page", channel="inapp", category="transactional",
                locales=[locale("en", title="{{title}}", text="{{text}}", data='{"url": "{{url}}", "note": "{{note}}"}'),
                         locale("fa", title="سلام", text="{{text}}")])
        self.site.pages["/demo.js"] = (200, "text/javascript", "window.events = []; for (const name of ['stentor-open', 'stentor-count', 'stentor-preference'])"
                                       " document.addEventListener(name, (event) => events.push([name, event.detail]));")
        self.page()

    def page(self, body="<stentor-inbox token-url='/token'></stentor-inbox>", attributes="lang='en'"):
        self.site.pages["/"] = (f"<!DOCTYPE html><html {attributes}><head><meta charset='utf-8'><title>Shop</title><script src='/demo.js'></script>"
                                f"<script type='module' src='{self.api}/inbox/stentor-inbox.js'></script></head><body><main><h1>Shop</h1>{body}</main></body></html>")
        return self

    def serve(self, **whose):
        """The application's own route for tokens of its user."""
        def make():
            status, _, answer = self.pipeline.post({"ttl_seconds": 600, **whose}, path="/v1/inbox/tokens")
            assert status == 201, answer
            return answer
        self.site.json("/token", make)
        return Client(self.pipeline, **whose)

    def send(self, to, title="Your order", text="It is on its way", url="https://shop.example/o/17", note="n", **fields):
        status, _, answer = self.pipeline.post({"channel": "inapp", "template": "inbox-page", "to": to, **fields,
                                                "variables": {"title": title, "text": text, "url": url, "note": note}})
        assert status == 202, answer
        return answer["id"]


@pytest.fixture(scope="module")
def world(pipeline):
    need()
    made = World(pipeline)
    yield made
    made.site.stop()
    assert made.gateway.stop() == 0


@pytest.fixture(scope="module")
def chromium():
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium):
    """Each test looks at what the console has said for itself."""
    chromium.expected = [r"/v1/inbox/stream .* 404"]  # of a gateway that has none: the browser says so, the element goes on by polling
    chromium.dark(False)
    chromium.errors()
    yield chromium
    said = chromium.errors()
    chromium.open("about:blank")
    assert said == []


def show(world, browser, count, body="<stentor-inbox token-url='/token'></stentor-inbox>", attributes="lang='en'", to=None, **fields):
    """A user with so many notifications, on the page, the panel open. (the user, its client, the notifications, the newest first)"""
    user = to or new_user()
    client = world.page(body, attributes).serve(to=user)
    sent = []
    for i in range(count):
        sent.append(world.send(user, title=f"Order {i}", **fields))
        if count <= 5 or i == count - 1:  # few: in this order, which nothing promises else
            client.wait_items(i + 1, "?limit=100")
    browser.open(world.site.origin)
    if "inline" not in body:
        browser.find("button.bell").click()
    return user, client, sent[::-1]


def titles(browser):
    return browser.texts("article .name")


def wait_titles(browser, *wanted):
    browser.until(lambda: titles(browser) == list(wanted), f"the titles {wanted}")


def badge(browser):
    return next(iter(browser.texts(".badge")), "")


def action(browser, title, part):
    article = browser.find("article", title)
    return next(button for button in browser.run("return [...arguments[0].querySelectorAll('button')]", article) if part in button.get_attribute("part").split())


def test_a_recipient_reads_archives_and_opens(world, browser):
    _, client, _ = show(world, browser, 3)
    wait_titles(browser, "Order 2", "Order 1", "Order 0")
    assert badge(browser) == "3" and "now" in browser.texts("time")[0] or "ago" in browser.texts("time")[0]
    action(browser, "Order 1", "read").click()
    browser.until(lambda: badge(browser) == "2", "the badge after one was read")
    action(browser, "Order 2", "archive").click()
    wait_titles(browser, "Order 1", "Order 0")
    browser.find("[role=tab]", "Archived").click()
    wait_titles(browser, "Order 2")
    action(browser, "Order 2", "unarchive").click()
    browser.find(".state", "Nothing here")
    browser.find("[role=tab]", "Unread").click()
    wait_titles(browser, "Order 2", "Order 0")
    assert client.get("/counts")["unseen"] == 0, "what was shown was seen"
    # The application takes the opening over: the event has the notification, and the page stays.
    browser.run("document.addEventListener('stentor-open', (event) => event.preventDefault())")
    browser.find("article", "Order 0").click()
    browser.until(lambda: client.get("/counts")["unread"] == 1, "the notification that was opened is read")
    opened = [detail for name, detail in browser.run("return window.events") if name == "stentor-open"]
    assert opened[0]["item"]["title"] == "Order 0" and opened[0]["item"]["data"]["url"] == "https://shop.example/o/17"

    def counted():
        return [detail["unread"] for name, detail in browser.run("return window.events") if name == "stentor-count"]
    browser.until(lambda: counted()[-1] == 1, "the count of what is unread")
    assert counted()[0] == 3 and browser.driver.current_url == f"{world.site.origin}/"
    browser.find("button[part='read-all']").click()
    browser.until(lambda: badge(browser) == "", "the badge after all were read")


def test_a_new_one_arrives_by_itself(world, browser):
    user, client, _ = show(world, browser, 1)
    wait_titles(browser, "Order 0")
    world.send(user, title="Just now")
    client.wait_items(2)
    # Without a stream the counts are asked for every half minute, and at once when the page is seen again.
    browser.run("document.dispatchEvent(new Event('visibilitychange'))")
    browser.until(lambda: titles(browser) == ["Just now", "Order 0"], "the new notification")
    assert badge(browser) == "2"
    assert "New notifications: 1" in browser.run("return arguments[0].textContent", browser.all(".sr[role=status]")[0])


def test_without_a_stream_a_page_that_is_not_seen_asks_for_nothing(world, browser):
    # A clock that runs a thousand times as fast, and a page that says it is hidden: its counts are asked for when it is seen again.
    user = new_user()
    world.page().serve(to=user)
    hasten = "const real = setTimeout; window.setTimeout = (f, ms, ...rest) => real(f, ms / 1000, ...rest);"
    hide = "window.unseen = false; Object.defineProperty(Document.prototype, 'hidden', {get: () => window.unseen});"
    count = ("window.asked = 0; const fetched = fetch; window.fetch = (url, ...rest) => { asked += String(url).endsWith('/counts');"
             " return String(url).endsWith('/stream') ? Promise.resolve(new Response('', {status: 404})) : fetched(url, ...rest); };")
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": hasten + hide + count})
    try:
        browser.open(world.site.origin)
        asked = lambda: browser.run("return window.asked")  # noqa: E731
        browser.until(lambda: asked() >= 5, "counts asked for again and again")
        browser.run("window.unseen = true")
        later = "const done = arguments[arguments.length - 1]; setTimeout(() => done(window.asked), arguments[0] * 1000)"
        before = browser.driver.execute_async_script(later, 200)  # what was on its way
        assert browser.driver.execute_async_script(later, 400) == before, "thirteen times half a minute"
        browser.run("window.unseen = false; document.dispatchEvent(new Event('visibilitychange'))")
        browser.until(lambda: asked() > before, "a question when the page is seen again")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script["identifier"]})


def test_nothing_there_and_no_answer(world, browser):
    show(world, browser, 0)
    browser.find(".state", "Nothing here")
    assert browser.all("article") == [] and badge(browser) == ""
    browser.expected += [r"/token"]
    world.site.pages["/token"] = (500, "text/plain", "no")
    browser.open(world.site.origin)
    browser.find("button.bell").click()
    browser.find(".state", "This cannot be shown now.")
    world.serve(to=new_user())
    browser.find(".state button", "Try again").click()
    browser.find(".state", "Nothing here")


def test_a_token_that_ended_is_asked_for_again(world, browser):
    user, _, _ = show(world, browser, 1)
    wait_titles(browser, "Order 0")
    browser.expected += [r"401 \(Unauthorized\)"]
    before = world.site.asked.count("/token")
    good = world.site.pages["/token"]
    answers = iter([json.dumps({"token": "inb_AAAA", "expires_at": "2999-01-01T00:00:00Z"})])
    world.site.pages["/token"] = lambda: (200, "application/json", text) if (text := next(answers, None)) else good()
    browser.open(world.site.origin)
    browser.find("button.bell").click()
    wait_titles(browser, "Order 0")
    assert world.site.asked.count("/token") == before + 2


def test_hostile_content_is_text_and_runs_nothing(world, browser):
    user = new_user()
    world.send(user, title=HOSTILE, text=HOSTILE, url="javascript:window.hurt=1", note=HOSTILE)
    world.send(user, title="A data link", text="x", url="data:text/html,<script>alert(1)</script>")
    world.send(user, title="A good link", text="x", url="https://shop.example/?a=<b>")
    client = world.page().serve(to=user)
    stored = client.wait_items(3)[2]
    assert (stored["title"], stored["body"], stored["data"]["url"]) == (HOSTILE, HOSTILE, "javascript:window.hurt=1"), stored
    browser.open(world.site.origin)
    browser.find("button.bell").click()
    wait_titles(browser, "A good link", "A data link", HOSTILE)
    assert browser.texts("article .body")[2] == HOSTILE
    links = browser.all("article a")
    assert [(link.get_attribute("href"), link.get_attribute("rel")) for link in links] == [("https://shop.example/?a=%3Cb%3E", "noopener noreferrer")]
    browser.run("document.addEventListener('stentor-open', (event) => event.preventDefault())")
    browser.find("article", HOSTILE).click()
    browser.until(lambda: client.get("/counts")["unread"] == 2, "the click")
    assert browser.all("article img, article script") == [] and browser.run("return window.hurt") is None
    assert browser.driver.current_url == f"{world.site.origin}/"


def test_by_the_keyboard_alone(world, browser):
    _, client, sent = show(world, browser, 3, body="<button id='before'>Before</button><stentor-inbox token-url='/token'></stentor-inbox>")
    wait_titles(browser, "Order 2", "Order 1", "Order 0")
    browser.press("ESCAPE")
    browser.until(lambda: browser.focused().get_attribute("part") == "bell", "the focus back on the bell")
    assert browser.texts("article") == [] and browser.focused().get_attribute("aria-expanded") == "false"
    browser.run("document.getElementById('before').focus()")
    browser.press("TAB", "ENTER")
    wait_titles(browser, "Order 2", "Order 1", "Order 0")
    focused = lambda: browser.focused().text  # noqa: E731
    for _ in range(8):  # over the buttons of the head to the first notification
        browser.press("TAB")
        if browser.focused().tag_name == "article":
            break
    assert "Order 2" in focused()
    browser.press("ARROW_DOWN")
    assert "Order 1" in focused() and browser.focused().get_attribute("aria-posinset") == "2"
    browser.press("END")
    assert "Order 0" in focused()
    browser.press("HOME", "PAGE_DOWN", "TAB")
    assert browser.focused().tag_name == "a"
    browser.press("TAB", "TAB")
    assert browser.focused().text == "Archive"
    browser.press("ENTER")
    wait_titles(browser, "Order 2", "Order 0")
    browser.until(lambda: "Order 0" in focused(), "the focus on the next one")
    browser.press("TAB", "TAB", "TAB", "TAB")
    assert browser.focused().text == "Snooze"
    browser.press("ENTER")
    browser.until(lambda: browser.focused().get_attribute("role") == "menuitem", "the focus in the menu")
    browser.press("ARROW_DOWN")
    assert browser.focused().text == "Tomorrow at 9:00"
    browser.press("ESCAPE")
    browser.until(lambda: browser.focused().text == "Snooze", "the focus back on the menu's button")
    assert browser.texts("article"), "Escape closed the menu, not the panel"
    browser.press("ENTER", "ENTER")
    wait_titles(browser, "Order 2")
    assert [item["id"] for item in client.items("?tab=snoozed")] == [sent[2]]
    browser.run("document.addEventListener('stentor-open', (event) => event.preventDefault())")
    browser.until(lambda: browser.focused().tag_name == "article", "the focus on what is left")
    browser.press("ENTER")
    browser.until(lambda: client.get("/counts")["unread"] == 0, "the notification opened by Enter")
    browser.run("arguments[0].focus()", browser.find("[role=tab][aria-selected=true]"))
    browser.press("ARROW_RIGHT", "ARROW_RIGHT", "ARROW_RIGHT")
    assert browser.focused().text == "Snoozed"
    wait_titles(browser, "Order 0")


def test_the_list_goes_on_as_it_is_scrolled(world, browser):
    user = new_user()
    _, client, _ = show(world, browser, 45, to=user)
    browser.until(lambda: len(browser.all("article")) >= 20, "the first page")
    assert browser.all("article")[0].get_attribute("aria-setsize") == "-1"

    def scrolled():
        browser.run("arguments[0].scrollTop = arguments[0].scrollHeight", browser.all(".scroll")[0])
        return len(browser.all("article")) == 45
    browser.until(scrolled, "all that there are", 30)
    shown = browser.run("return arguments[0].map((each) => each.dataset.id)", browser.all("article"))
    assert shown == [item["id"] for item in client.items("?limit=100")]
    assert browser.all("article")[44].get_attribute("aria-setsize") == "45"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("direction", ["ltr", "rtl"])
def test_it_is_accessible_in_both_themes_and_directions(world, browser, dark, direction):
    browser.dark(dark)
    user = new_user()
    show(world, browser, 2, attributes=f"lang='{'fa' if direction == 'rtl' else 'en'}' dir='{direction}'", to=user)
    wait_titles(browser, "Order 1", "Order 0")
    action(browser, "Order 0", "snooze").click()
    browser.find("[role=menu]")
    panel = browser.find(".panel")
    assert browser.violations() == []
    ink = browser.run("return getComputedStyle(arguments[0]).backgroundColor", panel)
    assert (ink == "rgb(27, 30, 34)") == dark, ink
    left, width = browser.run("const box = arguments[0].getBoundingClientRect(); return [box.left, box.width]", panel)
    assert left >= 0 and left + width <= browser.run("return document.documentElement.clientWidth"), "the panel is within what is seen"
    tabs = browser.all("[role=tab]")
    assert (tabs[0].rect["x"] < tabs[1].rect["x"]) == (direction == "ltr")
    browser.run("arguments[0].focus()", tabs[0])
    browser.press("ARROW_RIGHT" if direction == "ltr" else "ARROW_LEFT")
    assert browser.run("return arguments[0].id", browser.focused()) == "tab-unread"


def test_two_tabs_agree(world, browser):
    _, _, _ = show(world, browser, 2)
    wait_titles(browser, "Order 1", "Order 0")
    first = browser.driver.current_window_handle
    with browser.another_tab() as second:
        browser.open(world.site.origin)
        browser.find("button.bell").click()
        wait_titles(browser, "Order 1", "Order 0")
        action(browser, "Order 1", "read").click()
        browser.until(lambda: badge(browser) == "1", "the badge where it was read")
        browser.driver.switch_to.window(first)
        browser.until(lambda: badge(browser) == "1", "the badge of the other tab")
        browser.until(lambda: browser.all("article")[0].get_attribute("class") != "unread", "the list of the other tab")
        action(browser, "Order 0", "archive").click()
        wait_titles(browser, "Order 1")
        browser.driver.switch_to.window(second)
        wait_titles(browser, "Order 1")


def test_texts_and_colours_are_the_application_s(world, browser):
    strings = json.dumps({"title": "Nachrichten", "all": "Alle", "bellUnread": "{n} neue Nachrichten"})
    show(world, browser, 1, body=f"<stentor-inbox token-url='/token' strings='{strings}'></stentor-inbox>", attributes="lang='de'")
    wait_titles(browser, "Order 0")
    assert browser.texts("h2") == ["Nachrichten"] and browser.texts("[role=tab]")[0] == "Alle"
    assert browser.find(".bell").get_attribute("aria-label") == "1 neue Nachrichten"
    assert browser.texts("time")[0].startswith(("vor", "jetzt"))
    browser.run("document.querySelector('stentor-inbox').style.setProperty('--stentor-background', 'rgb(1, 2, 3)')")
    assert browser.run("return getComputedStyle(arguments[0]).backgroundColor", browser.find(".panel")) == "rgb(1, 2, 3)"


def need_demo(world):
    if get(world.port, "/inbox/demo")[0] == 404:
        pytest.skip("the gateway was built without Node.js or npm's packages (cmake says which): no demo page")


def test_preferences_are_shown_and_stored(world, browser):
    user = new_user()
    make_recipient(world.pipeline, {"channel": "email", "address": f"{uuid.uuid4().hex[:12]}@example.com"}, {"channel": "inapp", "address": user})
    client = world.page("<stentor-preferences token-url='/token'></stentor-preferences>").serve(to=user)
    browser.open(world.site.origin)
    browser.find("table")
    assert browser.violations() == []
    box = next(each for each in browser.all("input") if each.get_attribute("name") == "marketing.email")
    assert box.is_selected() and box.get_attribute("aria-label") == "Offers and news, E-mail"
    browser.run("arguments[0].focus()", box)
    browser.press("SPACE")
    browser.find("[role=status]", "Saved")
    assert choice(client.get("/preferences")["preferences"], "marketing", "email") is False
    assert ["stentor-preference", {"category": "marketing", "channel": "email", "on": False}] in browser.run("return window.events")
    browser.expected += [r"/preferences .* 404"]
    world.serve(to=new_user())
    browser.open(world.site.origin)
    browser.find(".state", "There is nothing to choose here.")


def test_the_demo_page_shows_both(world, browser):
    need_demo(world)
    user = new_user()
    make_recipient(world.pipeline, {"channel": "inapp", "address": user})
    world.send(user, title="Welcome")
    client = Client(world.pipeline, to=user)
    client.wait_items(1)
    browser.open(f"{world.api}/inbox/demo#token={client.token}")
    browser.find("article .name", "Welcome")
    browser.find("stentor-preferences")
    browser.find("table")
    assert browser.driver.current_url == f"{world.api}/inbox/demo", "the token is in no history"
    assert browser.violations() == []


# ---- the files themselves ----

def get(port, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, None, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def test_the_module_is_small_and_kept_by_its_tag(world):
    status, headers, raw = get(world.port, "/inbox/stentor-inbox.js", Accept_Encoding="gzip")
    assert status == 200 and headers["Content-Encoding"] == "gzip" and headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert len(raw) <= 15 * 1024, "15 KB compressed"
    assert headers["Access-Control-Allow-Origin"] == "*" and headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Vary"] == "Accept-Encoding"
    text = gzip.decompress(raw)
    assert b"innerHTML" not in text and b"eval(" not in text and text.count(b"\nexport ") == 1 and b"\nimport " not in text
    for source in (HOME / "services/gateway/web/inbox").glob("*.js"):
        body = [line for line in source.read_text().splitlines() if line and not line.startswith(("import ", "export ", "//"))]
        assert all(line.encode() in text for line in body), source.name
    plain, kept = get(world.port, "/inbox/stentor-inbox.js"), get(world.port, "/inbox/stentor-inbox.js", Accept_Encoding="gzip", If_None_Match=headers["ETag"])
    assert plain[2] == text and "Content-Encoding" not in plain[1] and plain[1]["ETag"] != headers["ETag"]
    assert kept[0] == 304 and kept[2] == b"" and kept[1]["ETag"] == headers["ETag"]
    assert get(world.port, "/inbox/stentor-inbox.js", If_None_Match=headers["ETag"])[0] == 200, "the tag of another form"
    assert get(world.port, "/inbox/stentor-inbox.js", method="HEAD")[2] == b""


def test_pages_and_their_files_are_strict(world):
    need_demo(world)
    status, headers, page = get(world.port, "/inbox/demo")
    assert status == 200 and headers["Cache-Control"] == "no-cache" and "Access-Control-Allow-Origin" not in headers
    policy = dict(each.strip().split(" ", 1) for each in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["frame-ancestors"] == "'none'" and "unsafe" not in str(policy)
    name = page.decode().split('src="')[1].split('"')[0]
    status, headers, _ = get(world.port, name, Accept_Encoding="br, gzip")
    assert status == 200 and headers["Cache-Control"] == "public, max-age=31536000, immutable" and headers["Content-Encoding"] == "br"
    assert get(world.port, name, Accept_Encoding="br;q=0, gzip;q=0.5")[1]["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in get(world.port, name, Accept_Encoding="br;q=0, gzip;q=0.000")[1]
    for path in ("/inbox/", "/inbox/../etc/passwd", "/inbox/%2e%2e/main.c", "/inbox/index.js", "/inbox/assets/"):
        assert get(world.port, path)[0] == 404, path
    assert get(world.port, "/inbox/demo", method="POST")[0] == 405


def test_without_the_option_there_is_no_demo_page(pipeline):
    assert get(pipeline.gateway_port, "/inbox/stentor-inbox.js")[0] == 200
    status, _, problem = get(pipeline.gateway_port, "/inbox/demo")
    assert status == 404 and b"STENTOR_GATEWAY_INBOX_DEMO" in problem
    wait_until(lambda: get(pipeline.api_port, "/inbox/stentor-inbox.js")[0] == 200, 10, "the module through nginx")
