# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.harness.pipeline import Pipeline  # noqa: E402


@pytest.fixture(scope="session")
def pipeline():
    """One running pipeline for the tests that break nothing. Retries come after a second."""
    running = Pipeline({"STENTOR_RETRY_LADDER": "1,1,1"}, durable=True).start()
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
