# SPDX-License-Identifier: Apache-2.0
"""Where mails go when only the speed matters."""
import os

from tests.harness.processes import Process


class SmtpSink(Process):
    """postfix's smtp-sink: takes everything, keeps nothing. Stands where the harness has its mailbox."""

    name = "smtp-sink"

    def __init__(self, folder, port):
        super().__init__(folder)
        self.port = port

    def argv(self):
        return ["/usr/sbin/smtp-sink"] + (["-u", "nobody"] if os.getuid() == 0 else []) + [f"127.0.0.1:{self.port}", "1000"]
