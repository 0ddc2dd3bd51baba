# SPDX-License-Identifier: Apache-2.0
"""A pipeline whose log is stored as segments, a window a second, and what a test does to its streams."""
import json

from tests.harness.nats_client import NatsClient
from tests.harness.pipeline import Pipeline
from tests.harness.processes import wait_until


class StoredLog(Pipeline):
    def start(self, *services):
        self.storage = self.folder / "objects"
        self.extra = {"STENTOR_STORAGE_URL": f"file://{self.storage}", "STENTOR_SEGMENT_S": "1", "STENTOR_SEGMENT_SPOOL_DIR": self.folder, **self.extra}
        super().start(*services)
        self.client = NatsClient(self.nats.port)
        return self

    def stop(self):
        self.client.close()
        super().stop()

    def state(self, stream):
        return self.client.stream_info(stream)["state"]

    def purge(self, stream, **what):
        """Its beginning: before `seq`, or all but the last `keep`; else all of it."""
        assert json.loads(self.client.request(f"$JS.API.STREAM.PURGE.{stream}", json.dumps(what).encode()))["success"]

    def stored(self, stream):
        """Up to where."""
        return self.postgres.query(f"SELECT coalesce(max(sequence), 0) FROM archive.log_positions WHERE stream = '{stream}'")[0][0]

    def wait_stored(self, *streams):
        for stream in streams:
            end = self.state(stream)["last_seq"]
            wait_until(lambda: self.stored(stream) >= end, 30, f"{stream} stored up to {end}")

    def send_all(self, count, **fields):
        """That many mails, each sent."""
        before = self.history_count("status = 'sent'")
        ids = [self.send(to=f"user{before + i}@example.com", **fields) for i in range(count)]
        wait_until(lambda: self.history_count("status = 'sent'") >= before + count, 30, "all sent")
        return ids

    def lose_unstored(self, count=1):
        """A hole in STATUS: mails are sent while archiving is off, and their statuses are gone before it is on again."""
        archiver = self.services["archiver"]
        archiver.stop()
        url = archiver.options.pop("STENTOR_STORAGE_URL")
        archiver.start()
        self.send_all(count)
        archiver.stop()
        self.purge("STATUS", keep=1)
        archiver.options["STENTOR_STORAGE_URL"] = url
        archiver.start()
