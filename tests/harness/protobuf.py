# SPDX-License-Identifier: Apache-2.0
"""Python classes of proto/stentor/v1, generated into the pipeline's temporary folder."""
import importlib
import subprocess
import sys
import types

from tests.harness.processes import HOME


def messages(pipeline):
    """A namespace with every message and enumeration of the protocol."""
    out = pipeline.folder / "python"
    if not out.exists():
        out.mkdir()
        protos = sorted((HOME / "proto" / "stentor" / "v1").glob("*.proto"))
        subprocess.run(["protoc", f"-I{HOME / 'proto'}", f"--python_out={out}", *map(str, protos)], check=True)
    if str(out) not in sys.path:
        sys.path.insert(0, str(out))
    namespace = types.SimpleNamespace()
    for name in ["common", "request", "rendered", "status", "deferred", "inbound", "dead", "config", "people", "order", "event", "feed", "reply", "webhook"]:
        module = importlib.import_module(f"stentor.v1.{name}_pb2")
        namespace.__dict__.update({key: value for key, value in vars(module).items() if not key.startswith("_")})
    return namespace
