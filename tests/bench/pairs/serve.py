# SPDX-License-Identifier: Apache-2.0
"""The whole product of one build on free ports, by that build's own harness, which knows its programs; a process of its own, because two
harnesses do not fit into one.

  serve.py TREE '{"sink_port": 1, "beside": [...], "options": {...}}'

Prints one line of JSON when it runs: what the bench asks and measures. Then takes commands, a line of JSON each, and answers each with one:
{"cli": [words], "admin": true} with {"output": "..."}, {"stop": true} with {"stopped": true}. When its input ends it ends everything at once.
"""
import json
import os
import shutil
import sys
from pathlib import Path

sys.path[0] = sys.argv[1]  # in the place of this folder: `tests.harness` is TREE's

from tests.harness.pipeline import Pipeline  # noqa: E402
from tests.harness.processes import SERVICES, free_port  # noqa: E402

POSTGRES = {"shared_preload_libraries": "pg_stat_statements",  # counts statements
            # Neither comes at a time of its own in the middle of one build's load: statistics are made once (loads_of.py), and no checkpoint
            # follows the first, so that the log, in which commits are counted, is whole and has few page images.
            "autovacuum": "off", "checkpoint_timeout": "1h", "max_wal_size": "16GB"}


class GivenSink:
    """Stands where a pipeline has its mailbox: the server is the bench's own, which outlives it."""

    def __init__(self, port):
        self.port = port

    def start(self):
        pass

    def stop(self):
        pass


def nats_environment(tree):
    """What this build's `up` gives nats-server on a machine of this size."""
    given = "export GOMAXPROCS" in (Path(tree) / "deploy" / "local" / "up").read_text() and os.cpu_count() <= 4
    return {**os.environ, **({"GOMAXPROCS": "1"} if given else {})}


def make(settings):
    pipeline = Pipeline(settings["options"], durable=True, bytes_percent=20)
    pipeline.mailbox = GivenSink(settings["sink_port"])
    postgres, nats, monitor = pipeline.postgres, pipeline.nats, free_port()
    words = [word for name, value in POSTGRES.items() for word in ("-c", f"{name}={value}")]
    postgres.argv = lambda: [*type(postgres).argv(postgres), *words]
    nats.argv = lambda: [*type(nats).argv(nats), "-m", str(monitor)]  # on the address that it listens on: the loopback's
    nats.environment = lambda: nats_environment(sys.argv[1])
    return pipeline, monitor


def description(pipeline, monitor):
    processes = {**pipeline.services, "nats": pipeline.nats, "postgres": pipeline.postgres}
    return {"pids": {name: process.child.pid for name, process in processes.items()}, "key": pipeline.key,
            "port": getattr(pipeline, "ingest_port", pipeline.api_port), "postgres_port": pipeline.postgres.port,
            "wal": str(pipeline.postgres.data / "pg_wal"), "postgres_bin": str(pipeline.postgres.bin),
            "nats_port": pipeline.nats.port, "monitor": monitor, "folder": str(pipeline.folder)}


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    settings = json.loads(sys.argv[2])
    pipeline, monitor = make(settings)
    try:
        pipeline.start([*SERVICES, *settings["beside"]])
        say(description(pipeline, monitor))
        for line in sys.stdin:
            command = json.loads(line)
            if "stop" in command:
                pipeline.stop()
                say({"stopped": True})
                return
            say({"output": pipeline.cli(*command["cli"], admin=command["admin"])})
    finally:
        if pipeline.postgres.child is not None:
            pipeline.kill()
        shutil.rmtree(pipeline.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
