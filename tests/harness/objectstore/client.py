# SPDX-License-Identifier: Apache-2.0
"""The test's own hand in a bucket: looks at objects and changes, shortens and deletes them behind the product's back."""
import http.client
import json
import urllib.parse
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

from tests.harness.objectstore import sigv4


@dataclass
class Answer:
    status: int
    headers: dict  # lower-case names
    body: bytes

    @property
    def code(self):
        """S3's word for what went wrong, '' for none."""
        return (self.texts("Code") or [""])[0] if self.body.startswith(b"<?xml") else ""

    def texts(self, tag):
        return [element.text or "" for element in ElementTree.fromstring(self.body).iter() if element.tag.rpartition("}")[2] == tag]


class Bucket:
    """endpoint: http://host:port. The names and values of `environment()` are the product's options."""

    def __init__(self, endpoint, name, credentials, region="us-east-1"):
        self.endpoint, self.name, self.credentials, self.region = endpoint, name, credentials, region
        self.host = urllib.parse.urlsplit(endpoint).netloc

    def url(self, prefix=""):
        """As STENTOR_STORAGE_URL names it."""
        return f"s3://{self.name}{'/' + prefix if prefix else ''}?region={self.region}&endpoint={self.endpoint}"

    def environment(self, prefix=""):
        values = {"STENTOR_STORAGE_URL": self.url(prefix), "STENTOR_STORAGE_KEY_ID": self.credentials.key_id,
                  "STENTOR_STORAGE_SECRET": self.credentials.secret}
        return {**values, **({"STENTOR_STORAGE_SESSION_TOKEN": self.credentials.token} if self.credentials.token else {})}

    def ask(self, method, key="", query=(), body=b"", headers=None):
        path = f"/{self.name}" + (f"/{key}" if key else "")
        sent = sigv4.sign(method, path, query, {"host": self.host, **(headers or {})}, body, self.credentials, self.region)
        target = sigv4.encode(path, slash_too=False) + (f"?{sigv4.canonical_query(query)}" if query else "")
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request(method, target, body=body or None, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def must(self, *words, **named):
        answer = self.ask(*words, **named)
        assert answer.status < 300, f"{words[:2]}: {answer.status} {answer.body[:300]}"
        return answer

    def create(self):
        self.must("PUT")
        return self

    def put(self, key, body, **headers):
        return self.must("PUT", key, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def get(self, key):
        return self.must("GET", key).body

    def json(self, key):
        return json.loads(self.get(key))

    def exists(self, key):
        return self.ask("HEAD", key).status == 200

    def delete(self, key):
        self.must("DELETE", key)

    def keys(self, prefix=""):
        """All of them, in order."""
        found, token = [], None
        while True:
            query = [("list-type", "2"), ("prefix", prefix)] + ([("continuation-token", token)] if token else [])
            page = self.must("GET", query=query)
            found += page.texts("Key")
            token = (page.texts("NextContinuationToken") or [None])[0]
            if not token:
                return found

    def objects(self, prefix=""):
        """{key: body}: what the end of a run is compared by."""
        return {key: self.get(key) for key in self.keys(prefix)}
