# SPDX-License-Identifier: Apache-2.0
"""Requests to ingest as callers send them."""
import http.client
import threading
import time


def post_all(port, key, bodies, interval=0.0, callers=2, keys=None):
    """Posts every body (bytes) over so many connections; with an interval each body has its time, with keys its Idempotency-Key. What gets a 503
    is sent again."""
    start = time.monotonic()
    lock, queue = threading.Lock(), list(enumerate(bodies))[::-1]
    failures = []

    def post(connection, index, raw):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}", **({"Idempotency-Key": keys[index]} if keys else {})}
        connection.request("POST", "/v1/notifications", raw, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def caller():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not failures:
            with lock:
                if not queue:
                    return
                index, raw = queue.pop()
            time.sleep(max(0.0, start + index * interval - time.monotonic()))
            status, text = post(connection, index, raw)
            while status == 503:
                time.sleep(0.05)
                status, text = post(connection, index, raw)
            if status != 202:
                failures.append((status, text))

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert not queue, f"{len(queue)} bodies were not sent: a caller has died"
