# SPDX-License-Identifier: Apache-2.0
"""The mailbox of `up`, a handler of aiosmtpd: a Maildir for every address but one, so that the demo has a mail that fails."""
from aiosmtpd.handlers import Mailbox

UNKNOWN = "carol@works.test"


class DemoMailbox(Mailbox):
    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):  # noqa: N802 (aiosmtpd's name)
        if address.lower() == UNKNOWN:
            return f"550 5.1.1 <{UNKNOWN}>: there is no such mailbox here"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(rcpt_options)
        return "250 OK"
