# SPDX-License-Identifier: Apache-2.0
"""Every example of the API's document is sent to a running pipeline, and its answer is one that the document describes."""
import pytest

from tests.harness import openapi
from tests.harness.openapi.tryout import Tryout, fault_of, started

ORDER = [one for one in openapi.in_order() if "skip" not in (one.try_ or {})]


def fault_of_repeat(tryout, operation, answer):
    """Where the document says that a route takes an Idempotency-Key, a repeat gets the same answer and says so."""
    if "Idempotency-Key" not in [parameter["name"] for parameter in operation.named("header")] or answer.status >= 300:
        return ""
    again = tryout.repeat(operation)
    same = (again.status, again.raw) == (answer.status, answer.raw) and again.headers.get("Idempotent-Replayed") == "true"
    return "" if same else f"the repeat: {again.status} {again.raw[:300]}"


@pytest.fixture(scope="module")
def tried():
    """{operation's id: why its answer is not as described, ""}: all are sent in turn, and one that fails takes those behind it along."""
    pipeline = started()
    tryout, said = Tryout(pipeline), {}
    for operation in ORDER:
        try:
            answer = tryout.run(operation)
            said[operation.id] = fault_of(operation, answer) or fault_of_repeat(tryout, operation, answer)
        except (AssertionError, KeyError) as error:
            said[operation.id] = repr(error)
    yield tryout, said
    pipeline.stop()


@pytest.mark.parametrize("operation", ORDER, ids=str)
def test_the_answer_to_an_example_is_as_the_document_says(tried, operation):
    tryout, said = tried
    assert said[operation.id] == ""
    answer = tryout.answers[operation.id]
    assert answer.headers["Stentor-Request-Id"].startswith("req_")
    described = {name.lower() for name in operation.response(answer.status).get("headers", {})}
    for name in ("etag", "location"):
        has = name in {header.lower() for header in answer.headers}
        assert has <= (name in described), f"the answer has {name}, of which the document says nothing"


def test_what_is_left_out_is_named_with_a_reason():
    for one in openapi.OPERATIONS:
        assert one.try_ is not None, f"{one.id} has no x-try"
        assert set(one.try_) <= {"after", "from", "with", "status", "until", "skip"}, one.id
        assert "skip" not in one.try_ or len(one.try_["skip"]) > 10
