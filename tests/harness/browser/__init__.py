# SPDX-License-Identifier: Apache-2.0
"""A real browser (Debian's chromium by its driver) for tests of web pages: what is in shadow roots is found, too, keys are real, and no error stays
unseen in its console. Only under /usr/bin/python3, which has selenium."""
import contextlib
import fcntl
import http.server
import json
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from tests.harness.processes import free_port, wait_until

HERE = Path(__file__).resolve().parent
DRIVER = "/usr/bin/chromedriver"
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--disable-extensions", "--mute-audio",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]
# The elements that match within the document and all open shadow roots.
DEEP = """const found = []; const walk = (root) => { for (const each of root.querySelectorAll('*')) {
  if (each.matches(arguments[0])) found.push(each); if (each.shadowRoot) walk(each.shadowRoot); } }; walk(document); return found;"""
FOCUS = "let at = document.activeElement; while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement; return at;"


def need():
    if not Path(DRIVER).exists():
        pytest.skip("no chromium-driver here: apt-get install chromium chromium-driver python3-selenium")
    return pytest.importorskip("selenium.webdriver")


def axe():
    """axe-core's script, of npm, fetched once."""
    if not shutil.which("npm"):
        pytest.skip("no npm here: apt-get install nodejs npm")
    with open(HERE / "package.json") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (HERE / "node_modules" / "axe-core").exists():
            done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True, text=True, timeout=300)
            if re.search(r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|CERT_IN_CHAIN", done.stderr):
                pytest.skip("the npm registry cannot be reached from here")
            assert done.returncode == 0, done.stderr
    return (HERE / "node_modules" / "axe-core" / "axe.min.js").read_text()


class Browser:
    """One chromium. `with Browser() as browser:`; its profile ends with it."""

    def __init__(self, size=(1000, 900)):
        webdriver = need()
        from selenium.webdriver.chrome.service import Service
        self.profile = tempfile.mkdtemp(prefix="stentor-browser-")
        options = webdriver.ChromeOptions()
        for argument in [*ARGUMENTS, f"--user-data-dir={self.profile}", f"--window-size={size[0]},{size[1]}"]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.set_page_load_timeout(60)
        self.expected = []  # patterns of console errors that a test causes on purpose

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        try:
            if kind is None:
                said = self.errors()
                assert said == [], said
        finally:
            self.driver.quit()
            shutil.rmtree(self.profile, ignore_errors=True)

    def errors(self):
        """What the console has said since the last call, but for what is expected."""
        said = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        return [message for message in said if not any(re.search(pattern, message) for pattern in self.expected)]

    # ---- looking ----

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.run(DEEP, selector)

    def texts(self, selector):
        """Text as it is rendered; nothing of what is not seen."""
        return [element.text for element in self.all(selector) if element.is_displayed()]

    def find(self, selector, text=None, seconds=10):
        """The first that is seen, with this text in it if given."""
        def there():
            return next((each for each in self.all(selector) if each.is_displayed() and (text is None or text in each.text)), None)
        return self.until(there, f"{selector} {text or ''}", seconds)

    def until(self, condition, what, seconds=10):
        from selenium.common.exceptions import StaleElementReferenceException

        def holds():
            try:
                return condition()
            except StaleElementReferenceException:  # drawn again meanwhile
                return None
        return wait_until(holds, seconds, what)

    def focused(self):
        return self.run(FOCUS)

    # ---- doing ----

    def open(self, url):
        self.driver.get(url)

    def press(self, *keys):
        """Keys by name ("TAB", "ENTER", "ARROW_DOWN") or as characters, to whatever has the focus."""
        from selenium.webdriver import ActionChains, Keys
        for key in keys:
            ActionChains(self.driver).send_keys(getattr(Keys, key, key)).perform()

    def dark(self, on=True):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]})

    def violations(self):
        """axe-core's, each as "rule: element"."""
        self.run(axe())
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run(document, {resultTypes: ['violations'], iframes: false}).then((result) => done(result.violations), (e) => done(String(e)));")
        assert isinstance(found, list), found
        return [f"{rule['id']}: {node['target']} {node['failureSummary']}" for rule in found for node in rule["nodes"]]

    @contextlib.contextmanager
    def another_tab(self):
        before = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        tab = self.driver.current_window_handle
        try:
            yield tab
        finally:
            self.driver.switch_to.window(tab)
            self.driver.close()
            self.driver.switch_to.window(before)


class Site:
    """A web application of a tenant's: pages, by path, as text or as functions of the request that return (status, type, text)."""

    def __init__(self):
        self.port = free_port()
        self.pages = {}
        self.asked = []
        self.callers = 0  # connections, also those that ask for nothing
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def setup(self):
                site.callers += 1
                super().setup()

            def do_GET(self):  # noqa: N802 (http.server's name)
                path = self.path.partition("?")[0]
                site.asked.append(path)
                page = site.pages.get(path, (404, "text/plain", "nothing"))
                page = page() if callable(page) else page
                status, kind, text = page if isinstance(page, tuple) else (200, "text/html; charset=utf-8", page)
                raw = text if isinstance(text, bytes) else text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(raw)))
                for name, value in site.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_):
                pass

        self.headers = {}
        self.pages["/favicon.ico"] = (204, "image/x-icon", "")
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    def json(self, path, make):
        self.pages[path] = lambda: (200, "application/json", json.dumps(make()))

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)
