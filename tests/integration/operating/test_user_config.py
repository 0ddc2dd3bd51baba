# SPDX-License-Identifier: Apache-2.0
"""`stentor` without options: the user's own settings, who may read them, `login` and `logout`, and what deploy/local writes and removes."""
import os
import pty
import re
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.harness.processes import BIN, HOME, free_port, wait_until

KEY = "stn_" + "0" * 16 + "." + "a" * 64


class _Api(BaseHTTPRequestHandler):
    """Takes KEY, and says whose it is."""

    def do_GET(self):
        ok = self.headers["Authorization"] == f"Bearer {KEY}"
        body = b'{"tenant": "acme"}' if ok else b'{"title": "Unauthorized", "detail": "the key is not known"}'
        self.send_response(200 if ok else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(name="api", scope="module")
def _api():
    server = HTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(name="home")
def _home(tmp_path):
    """A user's home: `run` calls stentor there."""
    class User:
        folder = tmp_path
        file = tmp_path / ".config/stentor/config"

        def run(self, *words, status=0, stdin="", **environment):
            done = subprocess.run([BIN / "stentor", *words], input=stdin, env={"HOME": str(tmp_path), **environment}, capture_output=True,
                                  text=True, timeout=30)
            assert done.returncode == status, (done.stdout, done.stderr)
            return done.stdout if status == 0 else done.stderr

        def write(self, text, mode=0o600):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(text)
            self.file.chmod(mode)

        def asks(self, *words, **environment):
            """Which address is asked, and where it comes from."""
            said = self.run(*words, "recipient", "get", "x", status=1, **{"STENTOR_API_KEY": "k", **environment})
            return re.search(r"no answer from (\S+) \(STENTOR_API_URL, from ([^)]+)\): .*stentor login URL", said).groups()
    return User()


def _address():
    return f"http://127.0.0.1:{free_port()}"


def test_flags_win_over_the_environment_and_that_over_the_file_and_the_origin_is_named(home):
    in_file, in_environment, in_flag = _address(), _address(), _address()
    home.write(f"STENTOR_API_URL={in_file}\n")
    assert home.asks() == (in_file, str(home.file))
    assert home.asks(STENTOR_API_URL=in_environment) == (in_environment, "the environment")
    assert home.asks("--api-url", in_flag, STENTOR_API_URL=in_environment) == (in_flag, "the command line")
    assert home.asks(f"--api-url={in_flag}") == (in_flag, "the command line")


def test_xdg_config_home_and_a_file_that_is_named_come_before_the_users_own(home, tmp_path):
    own, other, named = _address(), _address(), _address()
    home.write(f"STENTOR_API_URL={own}\n")
    folder = tmp_path / "xdg"
    (folder / "stentor").mkdir(parents=True)
    (folder / "stentor/config").write_text(f"STENTOR_API_URL={other}\n")
    (folder / "stentor/config").chmod(0o600)
    assert home.asks(XDG_CONFIG_HOME=str(folder)) == (other, str(folder / "stentor/config"))
    assert home.asks(XDG_CONFIG_HOME="relative") == (own, str(home.file))
    (tmp_path / "named.conf").write_text(f"STENTOR_API_URL={named}\n")  # a service's file: its rights are not looked at
    assert home.asks("--config", str(tmp_path / "named.conf"))[0] == named
    assert home.asks(STENTOR_CONFIG=str(tmp_path / "named.conf")) == (named, str(tmp_path / "named.conf"))


def test_without_a_file_the_default_is_asked_and_a_missing_key_says_login(home):
    said = home.run("recipient", "get", "x", status=2)
    assert "STENTOR_API_KEY is not set (HINT: stentor login URL" in said


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_that_others_may_read_is_refused_with_the_command_that_mends_it(home, mode):
    home.write(f"STENTOR_API_KEY={KEY}\n", mode)
    said = home.run("recipient", "get", "x", status=2)
    assert f"HINT: chmod 600 '{home.file}'" in said and KEY not in said
    assert home.run("help") and home.run("completion", "bash")  # these need no settings


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a file away")
def test_a_file_of_another_user_is_refused(home):
    home.write("STENTOR_HOME=/tmp/theirs\n")
    os.chown(home.file, 65534, 65534)
    assert "belongs to another user" in home.run("down", status=2)


@pytest.mark.parametrize("line,why", [
    ("STENTOR_API_KY=x", "line 1: no program of Stentor knows 'STENTOR_API_KY' (HINT: is STENTOR_API_KEY meant?)"),
    ("API_URL=x", "line 1: 'API_URL' is not an option: names begin with STENTOR_"),
    ("nonsense", "line 1"),
])
def test_a_wrong_line_is_refused_by_file_and_line_with_the_nearest_name(home, line, why):
    home.write(line + "\n")
    said = home.run("recipient", "get", "x", status=2)
    assert str(home.file) in said and why in said


def test_login_writes_address_key_and_tenant_for_the_user_alone_and_logout_takes_them_out(home, api, tmp_path):
    (tmp_path / "key").write_text("old")
    home.write(f"# mine\nSTENTOR_HOME=/srv/stentor\nSTENTOR_API_KEY_FILE={tmp_path}/key\nSTENTOR_API_URL = http://old\n")
    assert "tenant         acme" in home.run("login", api, stdin=f"{KEY}\n")
    assert home.file.stat().st_mode & 0o777 == 0o600
    assert home.file.read_text() == (f'# mine\nSTENTOR_HOME=/srv/stentor\nSTENTOR_API_URL="{api}"\nSTENTOR_API_KEY="{KEY}"\n'
                                     'STENTOR_TENANT="acme"\n')
    assert home.run("recipient", "get", "x")  # asked with what was written
    assert '"api":"' in home.run("login", "--json", stdin=KEY)  # the address stays
    home.run("logout")
    assert home.file.read_text() == "# mine\nSTENTOR_HOME=/srv/stentor\n"


def test_login_makes_the_folder_and_logout_removes_a_file_with_nothing_left(home, api, tmp_path):
    (tmp_path / "key").write_text(KEY + "\n")
    home.run("login", api, "--key-file", str(tmp_path / "key"))
    assert home.file.parent.stat().st_mode & 0o777 == 0o700 and os.listdir(home.file.parent) == ["config"]
    home.run("logout")
    assert not home.file.exists()
    home.run("logout")


@pytest.mark.parametrize("words,stdin,why", [
    ([], "stn_wrong", "the API answered 401"),
    ([], "", "standard input is no API key"),
    ([], "two words", "standard input is no API key"),
    (["--key-file", "/nowhere"], "", "/nowhere"),
])
def test_login_writes_nothing_when_the_key_is_no_good(home, api, words, stdin, why):
    assert why in home.run("login", api, *words, stdin=stdin, status=1 if "401" in why else 2)
    assert not home.file.exists()


def test_login_names_an_address_without_an_answer_and_takes_it_unchecked(home):
    url = _address()
    assert f"no answer from {url} (STENTOR_API_URL, from the command line)" in home.run("login", url, stdin=KEY, status=1)
    assert "is no address of the API" in home.run("login", "localhost:8080", stdin=KEY, status=2)
    assert "is no address of the API" in home.run("login", "http://localhost/", stdin=KEY, status=2)
    home.run("login", url, "--unchecked", "--tenant", "acme", stdin=KEY)
    assert home.asks() == (url, str(home.file))
    done = subprocess.run([BIN / "stentor", "login", url], env={}, input=KEY, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "neither HOME nor XDG_CONFIG_HOME is set" in done.stderr


def test_a_terminal_does_not_show_the_key(home, api):
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(BIN / "stentor", ["stentor", "login", api], {"HOME": str(home.folder)})
    seen = os.read(fd, 100)
    deadline = time.monotonic() + 20
    while b"API key: " not in seen and time.monotonic() < deadline:
        seen += os.read(fd, 100)
    os.write(fd, f"{KEY}\n".encode())
    wait_until(home.file.exists, 20, "the file")
    while True:
        try:
            piece = os.read(fd, 1000)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    assert os.waitpid(pid, 0)[1] == 0 and KEY.encode() not in seen and b"acme" in seen


def test_the_key_of_a_file_goes_to_the_address_of_that_file_alone(home, api, tmp_path):
    stored, other = _address(), _address()
    home.write(f"STENTOR_API_URL={stored}\nSTENTOR_API_KEY={KEY}\n")
    refused = f"the API key of '{home.file}' goes to {stored} alone, not to {other}"  # a long path leaves no room for the hint
    for words, environment in ((["--api-url", other], {}), ([f"--api-url={other}"], {}), ([], {"STENTOR_API_URL": other})):
        assert refused in home.run(*words, "recipient", "get", "x", status=2, **environment), words
        assert refused in home.run(*words, "send", "--to", "a@example.com", "--template", "w", status=2, **environment)
        own = home.run(*words, "recipient", "get", "x", status=1, STENTOR_API_KEY="k", **environment)
        assert f"no answer from {other}" in own, "an address's own key"
    for same in (stored, stored + "/"):
        assert f"no answer from {same}" in home.run("--api-url", same, "recipient", "get", "x", status=1)
    (tmp_path / "key").write_text(KEY)
    for text in (f"STENTOR_API_KEY={KEY}\n", f"STENTOR_API_KEY_FILE={tmp_path}/key\n"):  # without an address it is the default's
        home.write(text)
        assert "goes to http://127.0.0.1:8080 alone" in home.run("--api-url", other, "recipient", "get", "x", status=2)
    named = tmp_path / "named.conf"
    named.write_text(f"STENTOR_API_URL={stored}\nSTENTOR_API_KEY={KEY}\n")
    for words, environment in ((["--config", str(named)], {}), ([f"--config={named}"], {}), ([], {"STENTOR_CONFIG": str(named)})):
        said = home.run(*words, "recipient", "get", "x", status=2, STENTOR_API_URL=other, **environment)
        assert f"the API key of '{named}' goes to {stored} alone" in said
    assert "tenant         acme" in home.run("login", api, stdin=KEY), "login replaces both"
    assert home.run("login", stdin=KEY, STENTOR_API_URL=api)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder away")
@pytest.mark.parametrize("made", ["", ".config/stentor"])
def test_root_leaves_nothing_in_the_home_of_another(api, made):
    """sudo with the HOME of its caller."""
    def login(home, user=0, **environment):
        return subprocess.run([BIN / "stentor", "login", api], env={"HOME": home, **environment}, input=KEY, capture_output=True, text=True,
                              timeout=30, user=user, group=user)

    with tempfile.TemporaryDirectory() as home:  # which another user reaches
        folder = Path(home)
        (folder / made).mkdir(parents=True, exist_ok=True)
        os.chown(home, 65534, 65534)
        os.chmod(home, 0o755)
        before = sorted(folder.rglob("*"))
        for environment in ({}, {"XDG_CONFIG_HOME": f"{home}/a/b/c"}):
            done = login(home, **environment)
            assert done.returncode == 1 and f"'{home}' belongs to another user" in done.stderr
            assert "(HINT: without sudo for that user's own, sudo -H for root's)" in done.stderr and sorted(folder.rglob("*")) == before
        done = login(home, user=65534)
        assert (done.returncode == 0) == (made == ""), "that user itself, where the folders are that user's"
        if made == "":
            assert {path.stat().st_uid for path in folder.rglob("*")} == {65534}


# ---- deploy/local ---------------------------------------------------------------------------------------------------


class _Local:
    def __init__(self, home, data):
        self.home, self.data = home, data

    def do(self, script, stdin="", status=0):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", f'. "{HOME}/deploy/local/lib.sh"\n{script}'], input=stdin, capture_output=True,
                              text=True, timeout=60, env={"PATH": os.environ["PATH"], "STENTOR_DATA": str(self.data), "HOME": str(self.home)})
        assert done.returncode == status, done.stderr
        return done.stdout

    def put(self, text, status=0):
        self.do("put_user_config $(id -un)", text, status)

    def drop(self):
        self.do("drop_user_config $(id -un)")


def test_what_up_writes_is_read_replaced_by_the_next_and_removed_by_its_own_down(home, tmp_path):
    one, other = _Local(tmp_path, tmp_path / "one"), _Local(tmp_path, tmp_path / "other")
    first, second = _address(), _address()
    one.put(f"STENTOR_API_URL={first}\nSTENTOR_API_KEY=k\n")
    assert home.file.stat().st_mode & 0o777 == 0o600 and home.asks() == (first, str(home.file))
    other.put(f"STENTOR_API_URL={second}\n")
    assert home.asks() == (second, str(home.file)) and os.listdir(home.file.parent) == ["config"]
    one.drop()
    assert home.file.exists()
    other.drop()
    assert not home.file.parent.exists()
    other.drop()


def test_the_settings_of_an_installation_that_is_still_there_stay(home, tmp_path):
    """As its command does (finding 20): a second installation on the machine takes nothing over."""
    one, other = _Local(tmp_path, tmp_path / "one"), _Local(tmp_path, tmp_path / "other")
    first, second = _address(), _address()
    one.put(f"STENTOR_API_URL={first}\n")
    (tmp_path / "one/etc").mkdir(parents=True)
    (tmp_path / "one/etc/ports").write_text("api=1\n")
    other.put(f"STENTOR_API_URL={second}\n", status=3)
    assert home.asks() == (first, str(home.file))
    one.put(f"STENTOR_API_URL={second}\n")
    assert home.asks() == (second, str(home.file))


def test_a_file_that_the_user_changed_is_neither_replaced_nor_removed(home, tmp_path):
    local = _Local(tmp_path, tmp_path / "data")
    local.put("STENTOR_API_URL=http://127.0.0.1:1\n")
    with home.file.open("a") as file:
        file.write("STENTOR_TENANT=mine\n")
    before = home.file.read_text()
    local.put("STENTOR_API_URL=http://127.0.0.1:2\n", status=3)
    local.drop()
    assert home.file.read_text() == before
    home.write("STENTOR_TENANT=mine\n")
    local.put("STENTOR_API_URL=http://127.0.0.1:2\n", status=3)
    local.drop()
    assert home.file.read_text() == "STENTOR_TENANT=mine\n"


def test_root_writes_no_secret_through_what_another_user_put_into_a_home():
    """put_user_config writes as that user: a link to a folder of root's leads nowhere."""
    text = (HOME / "deploy/local/lib.sh").read_text()
    assert re.search(r"setpriv --reuid \"\$user\".*env -i", text)
    up = (HOME / "deploy/local/up").read_text()
    block = up[up.index("for person in"):up.index("# Every user finds the command")]
    assert "put_user_config" in block and "NATS" not in block and "DATABASE" not in block
