# SPDX-License-Identifier: Apache-2.0
"""The gateway's console in a real browser: signed in by a one-time link, over plain HTTP, with the real services behind."""
import contextlib
import json

from tests.harness.browser import Browser
from tests.harness.length import amount

HOSTILE = "<img src=x onerror=\"window.hurt=1\"><script>window.hurt=1</script>"
# Of an act that is refused on purpose, the browser writes the status into its own log.
REFUSED = r"the server responded with a status of (4\d\d|503)"


class Console(Browser):
    """`with Console(pipeline) as console:`; leaving it demands that the browser's log has no error."""

    def __init__(self, pipeline, size=(1300, 900)):
        super().__init__(size)
        self.pipeline = pipeline

    def sign_in(self, *words, tenant=""):
        """As what `stentor console login` is asked for: words such as "--role", "support"."""
        done = self.pipeline.run_cli("console", "login", "--json", *words, tenant=tenant)
        assert done.returncode == 0, done.stdout + done.stderr
        self.open(json.loads(done.stdout)["url"])
        self.button("Sign in").click()
        self.find("header.top")
        return self

    def tenant(self, name):
        self.run("sessionStorage.setItem('stentor.tenant', arguments[0]); location.reload()", name)
        self.until(lambda: self.run("return document.querySelector('#tenant')?.value") == name, f"tenant {name}")
        return self

    def go(self, place, heading):
        """To "#/find?status=failed"; heading is its h1."""
        self.run("location.hash = arguments[0]", place)
        self.find("h1", heading)
        return self

    def run_until_shown(self, place, selector):
        """Milliseconds from going there until the first such element is there."""
        self.run("window.shown = 0; const began = performance.now(); location.hash = arguments[0]; (function look() {"
                 " if (document.querySelector(arguments[0])) window.shown = performance.now() - began; else requestAnimationFrame(() => look(arguments[0])); })(arguments[1])",
                 place, selector)
        return self.until(lambda: self.run("return window.shown"), f"{selector} of {place}")

    def button(self, text):
        return self.find("button", text)

    def fill(self, label, value):
        """Into the field with this label, as keys do."""
        field = self.field(label)
        if field.tag_name == "select":
            from selenium.webdriver.support.ui import Select
            next(option for option in Select(field).options if option.get_property("value") == value).click()
        else:
            field.clear()
            field.send_keys(value)

    def field(self, label):
        return self.until(lambda: self.run(
            "const label = [...document.querySelectorAll('label')].find((each) => each.textContent.trim().startsWith(arguments[0]) && each.offsetParent);"
            "return label && (document.getElementById(label.htmlFor) ?? label.querySelector('input, select, textarea'));", label), f"field {label}")

    def alert(self, text=None):
        return self.find("[role=alert]", text)

    @contextlib.contextmanager
    def refused(self):
        """What the API refuses meanwhile is no error; then the screen is left, so that no refusal comes later."""
        self.expected.append(REFUSED)
        yield
        self.go("#/live", "Live")
        said = self.errors()
        assert said == [], said
        self.expected.remove(REFUSED)

    # ---- what holds for each screen ----

    def sound(self):
        """No rule of axe-core is broken, in light and dark (with --long from right to left, too), nothing is cut off at the side, and no script of a stranger has run."""
        looks = {"light": lambda: None, "dark": self.dark, "rtl": lambda: self.run("document.documentElement.dir = 'rtl'")}
        try:
            for name, look in looks.items():
                look()
                found = self.violations() if name in amount(("light", "dark"), looks) else []  # what differs from right to left is the width
                assert not found, found
                assert self.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), "wider than the window"
        finally:
            self.dark(False)
            self.run("document.documentElement.dir = 'ltr'")
        assert self.run("return window.hurt") is None

    @contextlib.contextmanager
    def without(self, *patterns):
        """Requests to such addresses ("*/v1/notifications*") get no answer meanwhile."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(patterns)})
        self.expected.append("net::ERR_BLOCKED_BY_CLIENT")
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
            said = self.errors()
            assert said == [], said
            self.expected.remove("net::ERR_BLOCKED_BY_CLIENT")
