# SPDX-License-Identifier: Apache-2.0
"""What deploy/docker says, without an engine: hardened, pinned, and with names that our programs know."""
import contextlib
import json
import os
import re
import smtplib
import subprocess
import urllib.error
import urllib.request

import pytest
import yaml

from tests.harness.processes import BIN, HOME, NEIGHBOURS, SERVICES, free_port, wait_until

FOLDER = HOME / "deploy" / "docker"
TEXT = (FOLDER / "compose.yaml").read_text()
COMPOSE = yaml.safe_load(TEXT)
PARTS = COMPOSE["services"]
OURS = [*SERVICES, *NEIGHBOURS]
DOCKERFILE = (FOLDER / "Dockerfile").read_text()


def _options(program):
    """{name: is it a secret} of what a program reads."""
    words = ["man", "--markdown"] if program == "stentor" else ["--options-markdown"]
    text = subprocess.run([BIN / program, *words], capture_output=True, text=True, check=True, timeout=20).stdout
    return {name: "(secret" in rest for name, rest in re.findall(r"^\| `(STENTOR_\w+)` \|(.*)$", text, re.M)}


def _serve_names():
    """The variables of deploy/docker/serve itself."""
    return set(re.findall(r"\$\{(STENTOR_\w+)", (FOLDER / "serve").read_text()))


@pytest.mark.parametrize("name", PARTS)
def test_every_container_is_hardened(name):
    part = PARTS[name]
    assert part["read_only"] is True and part["cap_drop"] == ["ALL"] and part["security_opt"] == ["no-new-privileges:true"]
    assert part["mem_limit"] and part["pids_limit"] and part["logging"]["options"]["max-size"]
    assert not {"privileged", "cap_add", "devices", "pid", "ipc", "userns_mode"} & set(part)
    assert "docker.sock" not in json.dumps(part)
    if name != "grafana":  # its image has a user of its own
        assert int(part["user"].split(":")[0]) >= 10000
    # What the machine shows to others is chosen by whoever runs it: its own loopback unless said.
    assert all(port.startswith("${STENTOR_PUBLISH:-127.0.0.1}:") for port in part.get("ports", []))
    assert name in ("files", "init") or "etc:/etc/stentor" not in part.get("volumes", []) or name == "demo", "only what makes the secrets writes there"


@pytest.mark.parametrize("name", OURS)
def test_every_service_is_there_drains_and_has_a_group_of_its_own(name):
    part = PARTS[name]
    assert part["command"][0] == f"stentor-{name}" and (BIN / part["command"][0]).exists()
    uid, gid = part["user"].split(":")
    groups = dict(line.split(":x:") for line in (FOLDER / "group").read_text().replace(":\n", "\n").splitlines())
    assert uid == "10001" and groups[f"stentor-{name}"] == gid
    # The master key is read by those whose table asks for it.
    assert (part.get("group_add") == [groups["stentor-keys"]]) == ("STENTOR_MASTER_KEY_FILE" in _options(f"stentor-{name}"))
    assert int(part["stop_grace_period"].rstrip("s")) * 1000 > 20000, "longer than STENTOR_DRAIN_MS"
    assert part["volumes"][0] == "etc:/etc/stentor:ro" and part["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", PARTS)
def test_epoch_keys_are_read_by_who_has_the_option_and_written_by_ingest_alone(name):
    mounted = {volume.split(":")[0]: volume.split(":")[1:] for volume in PARTS[name].get("volumes", [])}
    reads = "STENTOR_EPOCH_KEYS_DIR" in _options(f"stentor-{name}") if name in OURS else name in ("files", "erasures", "stentor")
    assert mounted.get("epochs") == (None if not reads else ["/var/lib/stentor-epochs"] if name in ("files", "ingest") else ["/var/lib/stentor-epochs", "ro"])
    assert ("epochs-dumps" in mounted) == (name in ("files", "ingest"))
    if reads:  # the group of master.key, which the image gives the folder
        assert "10010" in PARTS[name]["group_add"]
        assert "install -d -o 10001 -g 10010 -m 2750 /var/lib/stentor-epochs " in DOCKERFILE.split("AS servers")[1].split("FROM")[0]


def test_the_folders_of_epoch_keys_are_those_that_init_writes_into_the_settings(tmp_path):
    subprocess.run([BIN / "stentor", "init", "files", "--folder", tmp_path / "etc", "--seen-as", "/etc/stentor"], check=True, capture_output=True, timeout=60)
    written = set(re.findall(r'^STENTOR_(?:EPOCH_KEYS|KEYS_DUMP)_DIR="(.*)"$', (tmp_path / "etc/ingest.conf").read_text(), re.M))
    assert written == {volume.split(":")[1] for volume in PARTS["ingest"]["volumes"] if volume.startswith("epochs")}


def test_open_erasures_are_run_again_and_again(tmp_path):
    """`serve erasures` with a command that counts, and a second for an hour."""
    assert PARTS["erasures"]["command"] == ["serve", "erasures"] and PARTS["erasures"]["restart"] == "unless-stopped"
    script = tmp_path / "serve"
    text = (FOLDER / "serve").read_text()
    assert "sleep 3600" in text
    script.write_text(text.replace("sleep 3600", "sleep 0.1"))
    (tmp_path / "stentor").write_text(f'#!/bin/sh\necho "$STENTOR_CONFIG $*" >>{tmp_path}/said\nexit 1\n')
    for path in (script, tmp_path / "stentor"):
        path.chmod(0o755)
    with subprocess.Popen([script, "erasures"], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, stderr=subprocess.PIPE, text=True) as child:
        wait_until(lambda: (tmp_path / "said").exists() and (tmp_path / "said").read_text().count("\n") >= 3, 20, "the third time")
        child.terminate()
        assert child.wait(20) == 0 and "tried again in an hour" in child.stderr.read()
    assert set((tmp_path / "said").read_text().splitlines()) == {"/etc/stentor/cli.conf erase run"}


def test_no_image_is_latest_and_all_but_grafana_are_built_here():
    images = {name: part["image"] for name, part in PARTS.items()}
    for name, image in images.items():
        tag = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", image).rpartition(":")[2]
        assert tag and tag != "latest" and "/" not in tag, (name, image)
        assert name == "grafana" or PARTS[name]["build"]["args"]["BASE"] == "${BASE:-debian:trixie-slim}", name
    targets = set(re.findall(r"^FROM \S+ AS (\w+)$", DOCKERFILE, re.M))
    assert {part["build"]["target"] for part in PARTS.values() if "build" in part} <= targets
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)) == {"${BASE}", "scratch", "servers"}


def test_every_variable_that_a_container_is_given_is_known():
    """A misspelt one would end the program at its start."""
    for name, part in PARTS.items():
        program = part.get("entrypoint", part.get("command", [""]))[0]
        given = set(part.get("environment", {}))
        if program.startswith("stentor"):
            options = _options(program)
            known = set(options) | {f"{option}_FILE" for option, is_secret in options.items() if is_secret} | {"STENTOR_CONFIG"}
            assert given - known == set(), name
        elif part.get("command") == ["serve", "demo"]:
            assert given - set(_options("stentor")) == {"STENTOR_CONFIG"}, name
        else:
            assert given <= _serve_names() | {"GOMAXPROCS"}, name  # Go's own, of nats-server
    every = {option for name in OURS for option in _options(f"stentor-{name}")}
    assert set(re.findall(r"\b(STENTOR_\w+)=", DOCKERFILE.split("AS run")[1])) <= every


def test_the_readme_has_the_variables_of_the_compose_file():
    used = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", TEXT))
    rows = re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`|none) \|", (FOLDER / "README.md").read_text(), re.M)
    written = {name: default for name, default in rows if name in used or name.startswith("STENTOR_")}
    # The name of nginx between containers has a default of its own.
    assert re.findall(r"\$\{STENTOR_HOSTNAME:-(\w+)\}", TEXT).count("nginx") >= 2
    assert written == {**used, "STENTOR_HOSTNAME": "localhost"}


def test_the_images_have_the_packages_of_the_list():
    installed = re.findall(r"install_packages ([^&]*?) &&", DOCKERFILE)
    assert installed, "a stage that installs nothing?"
    lists = set(re.findall(r"^([A-Z]+_PACKAGES)=", (HOME / "deploy/local/packages").read_text(), re.M))
    for words in installed:
        assert words == "$(cat /tmp/packages)" or {word.strip("$") for word in words.split()} <= lists, words
    assert "apt-get install" not in DOCKERFILE


def test_prometheus_asks_every_service():
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    assert set(config["scrape_configs"][0]["dns_sd_configs"][0]["names"]) == set(OURS)
    port = re.search(r"STENTOR_ADMIN_PORT=(\d+)", DOCKERFILE).group(1)
    assert config["scrape_configs"][0]["dns_sd_configs"][0]["port"] == int(port)
    assert f"http://127.0.0.1:{port}" in DOCKERFILE.split("HEALTHCHECK")[1]


def test_the_services_are_reached_over_the_network():
    """The programs listen on the loopback by default; in a container nothing would reach them."""
    binds = {name: value for name, value in re.findall(r"(STENTOR_\w+_BIND)=(\S+)", DOCKERFILE.split("AS run")[1])}
    every = {option for name in OURS for option in _options(f"stentor-{name}") if option.endswith("_BIND")}
    every.remove("STENTOR_LMTP_BIND")  # off until an operator has a mail server in front of it
    assert set(binds) == every and set(binds.values()) == {"0.0.0.0"}


# ---- the mailbox's page ----

@pytest.fixture(name="mailbox", scope="module")
def _mailbox(tmp_path_factory):
    smtp, page = free_port(), free_port()
    environment = {**os.environ, "MAILBOX_FOLDER": str(tmp_path_factory.mktemp("mailbox") / "mails"), "MAILBOX_BIND": "127.0.0.1",
                   "MAILBOX_SMTP_PORT": str(smtp), "MAILBOX_PAGE_PORT": str(page), "MAILBOX_KEEP": "3"}
    child = subprocess.Popen(["/usr/bin/python3", FOLDER / "mailbox"], env=environment)

    def ask(path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}{path}", timeout=5) as answer:
                return answer.status, dict(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, dict(error.headers), error.read().decode()

    def answers():
        with contextlib.suppress(OSError):
            return ask("/mails.json")[0] == 200
    try:
        wait_until(answers, 20, "the mailbox")
        yield ask, smtp
    finally:
        child.terminate()
        assert child.wait(10) == 0


def _put(smtp, subject, html="<b>Hello</b>"):
    with smtplib.SMTP("127.0.0.1", smtp, timeout=10) as client:
        client.sendmail("a@stentor.test", ["bob@example.com"], (
            f"From: a@stentor.test\r\nTo: bob@example.com\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n"
            'Content-Type: multipart/alternative; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nplain <i>words</i>\r\n'
            f"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}\r\n--b--\r\n").encode())


def test_the_mailbox_shows_a_mail(mailbox):
    ask, smtp = mailbox
    _put(smtp, "Welcome, <Zoe>!")
    mail = json.loads(ask("/mails.json")[2])["data"][0]
    assert (mail["to"], mail["subject"]) == ("bob@example.com", "Welcome, <Zoe>!")
    assert "Welcome, &lt;Zoe&gt;!" in ask("/")[2] and "<Zoe>" not in ask("/")[2]
    _, _, one = ask(f"/{mail['id']}")
    assert "plain &lt;i&gt;words&lt;/i&gt;" in one and "<iframe sandbox" in one
    assert ask(f"/{mail['id']}/html")[2].strip() == "<b>Hello</b>" and "boundary=" in ask(f"/{mail['id']}/raw")[2]


def test_a_mail_can_do_nothing_in_the_browser(mailbox):
    """Its page may load nothing and run nothing, inside the frame and when it is opened by itself."""
    ask, smtp = mailbox
    _put(smtp, "evil", "<script>top.location='http://evil.test'</script><img src=http://evil.test/pixel>")
    mail = json.loads(ask("/mails.json?limit=1")[2])["data"][0]
    for path in ("/", f"/{mail['id']}", f"/{mail['id']}/html", f"/{mail['id']}/raw"):
        _, headers, _ = ask(path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "img-src data:" in policy and "script-src" not in policy, path
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_mailbox_keeps_the_newest_and_knows_no_other_path(mailbox):
    ask, smtp = mailbox
    for number in range(5):
        _put(smtp, f"number {number}")
    answer = json.loads(ask("/mails.json")[2])
    assert answer["total"] == 3 and [mail["subject"] for mail in answer["data"]] == ["number 4", "number 3", "number 2"]
    for path in ("/nothing", "/../../etc/passwd", f"/{answer['data'][0]['id']}/../x", "/%2e%2e%2fetc"):
        assert ask(path)[0] == 404, path


@pytest.mark.parametrize("script", ["serve", "closure"])
def test_the_scripts_can_be_read(script):
    shell = (FOLDER / script).read_text().splitlines()[0].split("/")[-1].split()[-1]
    assert subprocess.run([shell, "-n", FOLDER / script]).returncode == 0
    assert os.access(FOLDER / script, os.X_OK)
