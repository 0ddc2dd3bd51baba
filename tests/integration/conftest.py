# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.harness import clusters, length  # noqa: E402
from tests.harness.objectstore import ceph  # noqa: E402
from tests.harness.pipeline import Pipeline  # noqa: E402
from tests.harness.processes import Process, Service  # noqa: E402

# The longest first, and the rest while they run: a long one that begins last would be waited for by the other workers.
LONGEST = ["test_crash_points", "test_rebuild", "test_kill", "test_audit", "test_chaos", "test_batches", "test_saga_crash", "test_cli", "test_vendors"]


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="everything in full: what takes longer than tests/run may take too")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: runs with --long only")
    # What a thread of a test asserts counts as what the test asserts; pytest only warns of it.
    config.addinivalue_line("filterwarnings", "error::pytest.PytestUnhandledThreadExceptionWarning")
    length.LONG = config.getoption("--long")
    if not hasattr(config, "workerinput"):  # one folder for all workers, which begin with this environment
        config.clusters = os.environ[clusters.FOLDER] = tempfile.mkdtemp(prefix="stentor-clusters-")
        os.chmod(config.clusters, 0o755)
        config.objects = os.environ[ceph.FOLDER] = tempfile.mkdtemp(prefix="stentor-objects-")
        os.environ[ceph.UNTIL] = str(os.getpid())


def pytest_unconfigure(config):
    if hasattr(config, "clusters"):
        shutil.rmtree(config.clusters, ignore_errors=True)
        ceph.end(config.objects)


def pytest_collection_modifyitems(config, items):
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(LONGEST)))  # stable: within a file nothing moves
    if not length.LONG:
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What the worker's services logged last, beside a failure: a rare one may not be seen again."""
    report = (yield).get_result()
    if report.failed:
        services = sorted((process for process in Process.started if isinstance(process, Service)), key=lambda service: service.name)
        for service in services:
            lines = (line[:240] for line in service.tail(5).splitlines())
            report.sections.append((f"{service.name} {service.state()}", "\n".join(lines)))


def pytest_terminal_summary(terminalreporter):
    """The ten files that take longest: seconds of one worker, set-up included. For tests/run: how many passed, and the names of those that did not."""
    seconds = Counter()
    if os.environ.get("TEST_RESULTS"):
        stats = terminalreporter.stats
        failed = dict.fromkeys(report.nodeid for kind in ("failed", "error") for report in stats.get(kind, []))
        Path(os.environ["TEST_RESULTS"], "failed").write_text("".join(f"{name}\n" for name in failed))
        Path(os.environ["TEST_RESULTS"], "passed").write_text(str(len(stats.get("passed", []))))
    for report in (report for reports in terminalreporter.stats.values() for report in reports if isinstance(report, pytest.TestReport)):
        seconds[report.nodeid.partition("::")[0]] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("slowest files")
        for file, took in seconds.most_common(10):
            terminalreporter.line(f"{took:7.1f} s  {file}")


@pytest.fixture(scope="session")
def pipeline():
    """One running pipeline for the tests that break nothing. Retries come after a second; text messages are accepted, without a vendor."""
    running = Pipeline({"STENTOR_RETRY_LADDER": "1,1,1", "STENTOR_INGEST_CHANNELS": "email,sms"}, durable=True).start()
    yield running
    running.stop()


@pytest.fixture
def nats(pipeline):
    """A raw client with every right."""
    from tests.harness.nats_client import NatsClient
    client = NatsClient(pipeline.nats.port)
    yield client
    client.close()


@pytest.fixture
def publish(nats):
    return nats.publish
