#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A durable subscriber of a tenant's statuses: it goes on where it stopped, however long it was away (up to the 30 days of STATUS).
    pip install nats-py && NATS_URL=... NATS_USER=... NATS_PASSWORD=... TENANT=demo ./durable.py [COUNT]
Prints a line "STATUS NOTIFICATION EVENT" for each; ends after COUNT. The user comes from `stentor subscriber create`."""
import asyncio
import os
import sys

import nats
from nats.errors import TimeoutError as NothingCame
from nats.js.api import AckPolicy, ConsumerConfig

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else sys.maxsize
USER = os.environ.get("NATS_USER", "stentor-subscriber")
DURABLE = os.environ.get("CONSUMER", f"{USER}-0")  # a subscriber has the names USER and USER-0 to USER-7


async def main():
    connection = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), user=USER, password=os.environ["NATS_PASSWORD"])
    js = connection.jetstream(domain="stentor")
    # Made once and there from then on: to say the same again changes nothing. `name` is needed: without it this client asks in the older way,
    # which names no filter, and is refused.
    await js.add_consumer("STATUS", ConsumerConfig(name=DURABLE, durable_name=DURABLE, ack_policy=AckPolicy.EXPLICIT,
                                                   filter_subject=f"ntf.status.{os.environ.get('TENANT', 'demo')}.>"))
    subscription = await js.pull_subscribe_bind(DURABLE, stream="STATUS")
    seen = 0
    while seen < COUNT:
        try:
            messages = await subscription.fetch(min(100, COUNT - seen), timeout=5)
        except NothingCame:
            continue
        for message in messages:
            status = message.headers["ce-type"].split(".")[2]  # stentor.notification.<status>.v1
            # An event may come twice, with the same id: with a database, make the id a unique key next to what is written.
            print(status, message.headers["ce-subject"], message.headers["ce-id"], flush=True)
            await message.ack_sync()  # after the work: what is not acknowledged within 30 s comes again
            seen += 1
    await connection.close()


asyncio.run(main())
