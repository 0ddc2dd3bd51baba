# SPDX-License-Identifier: Apache-2.0
"""`stentor doctor` tries the storage and says its class, or what is wrong and the remedy, in one line.

Each run waits 5 s for a NATS that is not there, so all of them run at once, each with a storage of its own."""
import concurrent.futures
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.harness.objectstore import ceph
from tests.harness.objectstore.puppet import Fault, Puppet
from tests.harness.processes import BIN, free_port


@dataclass
class Case:
    name: str
    result: str
    words: tuple  # that the line has
    states: dict = field(default_factory=dict)  # of the puppet
    options: dict = field(default_factory=dict)  # instead of the right ones; {url}: the right URL, {port}: nothing listens there
    fault: tuple = ()  # of the next two requests: fault, method
    leaves: bool = False  # it cannot delete what it has stored


CASES = [
    Case("versions", "ok", ("class A",)),
    Case("no versions", "ok", ("class B",), {"versioned": False}),
    Case("no conditions", "warn", ("class C", "HINT", "condition=none"), {"conditions": False}),
    Case("looks first", "warn", ("class C: looks",), {"conditions": False}, {"STENTOR_STORAGE_URL": "{url}&condition=none"}),
    Case("wrong secret", "fail", ("SignatureDoesNotMatch", "STENTOR_STORAGE_SECRET"), {}, {"STENTOR_STORAGE_SECRET": "wrong"}),
    Case("unknown key", "fail", ("InvalidAccessKeyId", "STENTOR_STORAGE_KEY_ID"), {}, {"STENTOR_STORAGE_KEY_ID": "unknown"}),
    Case("no key", "fail", ("STENTOR_STORAGE_KEY_ID",), {}, {"STENTOR_STORAGE_KEY_ID": ""}),
    Case("no bucket", "fail", ("NoSuchBucket", "STENTOR_STORAGE_URL"), {}, {"STENTOR_STORAGE_URL": "s3://another?region=eu-test-1&endpoint={endpoint}"}),
    Case("no server", "fail", ("attempts in",), {}, {"STENTOR_STORAGE_URL": "s3://puppet?endpoint=http://127.0.0.1:{port}"}),
    Case("no region", "fail", ("region",), {}, {"STENTOR_STORAGE_URL": "s3://bucket"}),
    Case("no scheme", "fail", ("not known",), {}, {"STENTOR_STORAGE_URL": "ftp://x"}),
    Case("read only", "fail", ("AccessDenied", "PRODUCTION.md"), {"read_only": True}),
    Case("full", "fail", ("QuotaExceeded", "full"), {"full": True}),
    Case("locked", "fail", ("locked", "AccessDenied"), {"locked": True}, leaves=True),
    Case("clock", "warn", ("clock is 1", "HINT"), {"skew_s": 120}),
    Case("wrong bytes", "fail", ("other bytes",), fault=(Fault.WRONG_BYTES, "GET")),
    Case("loses objects", "fail", ("other bytes",), fault=(Fault.LOST, "PUT")),
]


def doctor(environment):
    """(result, text) of the check."""
    nowhere = free_port()
    own = {"STENTOR_NATS_URL": f"nats://127.0.0.1:{nowhere}", "STENTOR_API_URL": f"http://127.0.0.1:{nowhere}", **environment}
    done = subprocess.run([BIN / "stentor", "doctor", "--json"], env={**os.environ, **own}, capture_output=True, text=True, timeout=60)
    checks = [check for check in json.loads(done.stdout)["checks"] if check["check"] == "storage"]
    assert len(checks) == 1, (done.stdout, done.stderr)
    return checks[0]["result"], checks[0]["text"]


def run(case):
    """(result, text, the keys that are left)"""
    with Puppet() as puppet:
        for name, value in case.states.items():
            setattr(puppet, name, value)
        if case.fault:
            puppet.next(case.fault[0], times=2, method=case.fault[1])
        right = puppet.environment()
        known = {"url": right["STENTOR_STORAGE_URL"], "port": free_port(), "endpoint": puppet.endpoint}
        result, text = doctor({**right, **{name: value.format(**known) for name, value in case.options.items()}})
        return result, text, puppet.keys()


@pytest.fixture(scope="module")
def answers():
    folder = Path(tempfile.mkdtemp(prefix="stentor-doctor-"))
    folder.chmod(0o755)
    with concurrent.futures.ThreadPoolExecutor(len(CASES) + 2) as pool:
        waiting = {case.name: pool.submit(run, case) for case in CASES}
        bucket = ceph.new_bucket("doctor") if not ceph.missing() else None
        waiting["folder"] = pool.submit(doctor, {"STENTOR_STORAGE_URL": f"file://{folder}/objects"})
        if os.getuid() == 0:
            (folder / "owned").mkdir()
            shutil.chown(folder / "owned", "daemon", "daemon")
            waiting["owned"] = pool.submit(doctor, {"STENTOR_STORAGE_URL": f"file://{folder}/owned"})
        if bucket:
            waiting["ceph"] = pool.submit(doctor, bucket.environment("a/b"))
        yield {**{name: future.result() for name, future in waiting.items()}, "bucket": bucket, "places": folder}
    shutil.rmtree(folder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_a_bucket_is_judged(answers, case):
    result, text, left = answers[case.name]
    assert result == case.result and all(word in text for word in case.words), (result, text)
    assert case.leaves or left == [], left


def test_a_folder_and_a_real_server_know_conditions(answers):
    assert answers["folder"][0] == "ok" and answers["folder"][1].startswith("class B")
    if answers["bucket"]:
        assert answers["ceph"][0] == "ok" and answers["ceph"][1].startswith("class B"), answers["ceph"]
        assert answers["bucket"].keys() == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root could take a folder from its owner")
def test_root_leaves_a_folder_to_its_owner(answers):
    assert answers["owned"][0] == "ok", answers["owned"]
    made = list((answers["places"] / "owned").rglob("*"))
    assert made and {path.owner() for path in made} == {"daemon"}
