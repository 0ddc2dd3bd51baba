# SPDX-License-Identifier: Apache-2.0
"""What an operator changed in etc/*.conf outlives `up` and `init files --renew` (finding 20), and another installation keeps its command."""
import os
import re
import subprocess

import pytest

from tests.harness.installed import do
from tests.harness.processes import HOME

LOCAL = HOME / "deploy" / "local"
UP = ["--set", "STENTOR_LOG_FORMAT=json", "--set", "dispatcher:STENTOR_SMTP_URL=smtp://127.0.0.1:2525", "--set", "dispatcher:STENTOR_SMTP_TLS=off",
      "--nats-listen", "127.0.0.1:4222"]


def lib(words, status=0, **environment):
    done = subprocess.run(["bash", "-euc", f'. "{LOCAL}/lib.sh"; {words}'], capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ["PATH"], **environment})
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout


def settings(etc, name="dispatcher"):
    return dict(re.findall(r'^(STENTOR_\w+)="?(.*?)"?$', (etc / f"{name}.conf").read_text(), re.M))


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_what_an_operator_changed_is_kept_and_the_rest_follows_the_ports(tmp_path):
    """Finding 20: STENTOR_SMTP_URL and STENTOR_MAIL_DOMAIN "were gone after the second `up`"."""
    etc = tmp_path / "etc"
    do("init", "files", "--folder", etc, "--renew", *UP, "--set", "STENTOR_ADMIN_PORT=9401")
    change(etc / "dispatcher.conf", 'STENTOR_SMTP_URL="smtp://127.0.0.1:2525"\n', "# ours\nSTENTOR_SMTP_URL=smtps://relay.example\nSTENTOR_MAIL_DOMAIN=acme.example\n")
    change(etc / "dispatcher.conf", 'STENTOR_SMTP_TLS="off"\n', "")
    for port in (9402, 9403):
        said = do("init", "files", "--folder", etc, "--renew", *UP, "--set", f"STENTOR_ADMIN_PORT={port}", "--json")
        found = settings(etc)
        assert found["STENTOR_SMTP_URL"] == "smtps://relay.example" and found["STENTOR_MAIL_DOMAIN"] == "acme.example"
        assert "STENTOR_SMTP_TLS" not in found and "# ours\n" in (etc / "dispatcher.conf").read_text()
        assert found["STENTOR_ADMIN_PORT"] == settings(etc, "renderer")["STENTOR_ADMIN_PORT"] == str(port)
        assert {step["what"] for step in said if step["result"] == "kept"} == {
            f"dispatcher.conf: {name}" for name in ("STENTOR_SMTP_URL", "STENTOR_MAIL_DOMAIN", "STENTOR_SMTP_TLS")}
    (etc / "dispatcher.conf").unlink()
    do("init", "files", "--folder", etc, "--renew", *UP)
    assert settings(etc)["STENTOR_SMTP_URL"] == "smtp://127.0.0.1:2525" and "STENTOR_MAIL_DOMAIN" not in settings(etc), "a deleted file is the default"


def test_what_the_callers_shell_says_is_not_for_the_installation_of_up():
    """STENTOR_TENANT=acme of the shell would go over etc/cli.conf, and the demo's key is the tenant demo's."""
    said = lib("forget_callers_settings; env", STENTOR_DATA="/srv/stentor", STENTOR_TENANT="acme", STENTOR_API_KEY_FILE="/mine", OTHER="stays")
    assert {line for line in said.splitlines() if "STENTOR_" in line or line.startswith("OTHER")} == {"STENTOR_DATA=/srv/stentor", "OTHER=stays"}
    up = (LOCAL / "up").read_text()
    assert up.index("forget_callers_settings\n") < up.index('"$DATA/bin/stentor'), "before any program is run"


def test_a_process_whose_settings_are_other_ones_now_is_started_again(tmp_path):
    """A release that has new settings and the same programs would else run on with the old ones."""
    up = (LOCAL / "up").read_text()
    before = re.search(r"^settings_before=.*$", up, re.M)[0]
    after = up[up.index("# What runs with other settings"):up.index("sed -n 's/^\\(.*[^ ]\\)  *kept$")]
    (tmp_path / "etc").mkdir()
    for name in ("ingest", "renderer", "dispatcher"):
        (tmp_path / f"etc/{name}.conf").write_text("STENTOR_LOG_FORMAT=json\n")
    said = lib(f'stop() {{ echo "$1 $2"; }}; {before}\necho STENTOR_VENDOR_ADDRESSES=loopback >>"$DATA/etc/dispatcher.conf"\n{after}', STENTOR_DATA=str(tmp_path))
    assert said == "dispatcher stentor-dispatcher\n"


def test_a_mail_server_of_the_operator_gets_no_first_mail(tmp_path):
    """`up` kept STENTOR_SMTP_URL and then failed, since its first mail had gone there and not into the mailbox."""
    do("init", "files", "--folder", tmp_path / "etc", "--renew", *UP)
    lib("sends_to_mailbox 2525", STENTOR_DATA=str(tmp_path))
    lib("sends_to_mailbox 252", 1, STENTOR_DATA=str(tmp_path))
    change(tmp_path / "etc" / "dispatcher.conf", 'STENTOR_SMTP_URL="smtp://127.0.0.1:2525"\n', "STENTOR_SMTP_URL=smtps://relay.example\n")
    lib("sends_to_mailbox 2525", 1, STENTOR_DATA=str(tmp_path))
    change(tmp_path / "etc" / "dispatcher.conf", "STENTOR_SMTP_URL=smtps://relay.example\n", "STENTOR_SMTP_URL=smtp://127.0.0.1:2525\n")
    lib("sends_to_mailbox 2525", STENTOR_DATA=str(tmp_path))


def test_the_configuration_of_nats_stays_as_a_whole(tmp_path):
    etc = tmp_path / "etc"
    do("init", "files", "--folder", etc, "--renew", *UP)
    do("init", "files", "--folder", etc, "--renew", "--nats-listen", "127.0.0.1:4333")
    assert 'listen: "127.0.0.1:4333"' in (etc / "nats.conf").read_text()
    change(etc / "nats.conf", "1TB", "10GB")
    said = do("init", "files", "--folder", etc, "--renew", *UP, "--json")
    assert "10GB" in (etc / "nats.conf").read_text() and {"what": "nats.conf: the whole file", "result": "kept"} in said


@pytest.mark.skipif(os.getuid() != 0, reason="the files are root's")
def test_the_files_that_up_itself_writes_are_kept_when_they_were_changed(tmp_path):
    (tmp_path / "etc").mkdir()
    conf = tmp_path / "etc/outbox-relay.conf"

    def put(text):
        return lib(f"printf '%s' '{text}' | put_unless_changed outbox-relay.conf root", STENTOR_DATA=str(tmp_path))
    assert put("one") == "" and put("two") == "" and conf.read_text() == "two"
    conf.write_text("mine")
    assert "outbox-relay.conf stays as you changed it" in put("three") and conf.read_text() == "mine"
    assert "stays as you changed it" in put("four"), "every time"
    conf.unlink()
    assert put("five") == "" and conf.read_text() == "five" and conf.stat().st_mode & 0o777 == 0o640
    (tmp_path / "etc/sums").unlink()  # as an installation of before
    assert "outbox-relay.conf.before" in put("six") and (tmp_path / "etc/outbox-relay.conf.before").read_text() == "five"
    assert conf.read_text() == "six" and put("six") == ""
    killed = lib("printf seven | (put_private() { kill -9 $BASHPID; }; put_unless_changed outbox-relay.conf root) || echo killed", STENTOR_DATA=str(tmp_path))
    assert "killed" in killed and conf.read_text() == "six"  # between the sum and the file
    assert put("seven") == "" and conf.read_text() == "seven", "a killed run does not make the file the operator's"
    text = (LOCAL / "up").read_text()
    assert all(f"put_unless_changed {name}" in text for name in ("memo.json", "outbox-relay.conf", "nginx.conf"))


def test_the_command_on_the_path_stays_the_other_installations(tmp_path):
    """Finding 20: `up` "also takes over /usr/local/bin/stentor from another installation"."""
    link, ours, other = tmp_path / "stentor", tmp_path / "ours/bin/stentor", tmp_path / "other/bin/stentor"
    other.parent.mkdir(parents=True)
    other.write_text("")

    def may():
        return lib(f'may_link "{ours}" "{link}" && echo yes || echo no', STENTOR_DATA=str(tmp_path / "ours")) == "yes\n"
    assert may(), "nothing is there"
    link.symlink_to(other)
    assert not may(), "another installation's"
    other.unlink()
    assert may(), "what it led to is gone"
    link.unlink()
    link.symlink_to(ours)
    assert may()
    link.unlink()
    link.write_text("#!/bin/sh\necho mine\n")
    assert not may(), "a program of the user's own"
    link.write_text(f"# written by deploy/local/up\nexec stentor --config {tmp_path}/ours/etc/cli.conf\n")
    assert may()
    link.write_text(f"# written by deploy/local/up\nexec stentor --config {tmp_path}/other/etc/cli.conf\n")
    assert not may()
    text = (LOCAL / "up").read_text()
    assert text.count("ln -sfn") == 1 and 'if may_link "$stentor" /usr/local/bin/stentor; then\n    ln -sfn "$stentor"' in text
