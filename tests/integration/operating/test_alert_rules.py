# SPDX-License-Identifier: Apache-2.0
"""An alert on a metric that no program has never fires: every name and label value of the rules is one of the sources."""
import re

import pytest

from tests.harness.processes import HOME

RULES = sorted((HOME / "deploy" / "prometheus").glob("*.rules.yml"))
SOURCES = "\n".join(path.read_text() for folder in ("services", "common") for path in (HOME / folder).rglob("*.c"))
SUFFIXES = ("_bucket", "_sum", "_count")  # of a histogram


def _expressions(text):
    """The expression of each rule: on its line, or folded (">-") on the lines below."""
    for folded, line in re.findall(r"^ +expr: (?:>-\n((?: {10}.*\n)+))?(.*)$", text, re.M):
        yield folded or line


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_rules_name_metrics_and_labels_that_there_are(path):
    text = path.read_text()
    expressions = list(_expressions(text))
    assert len(expressions) == text.count("- alert: ") > 0
    for expression in expressions:
        names = re.findall(r"\bstentor_[a-z_]+", expression)
        assert names, expression
        for name in names:
            bare = next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s)), name)
            assert f'"{name}"' in SOURCES or f'"{bare}"' in SOURCES, f"{name}: no service has it"
        for value in re.findall(r'="([A-Za-z_]+)"', expression):
            assert f'"{value}"' in SOURCES, f"{value}: no label value of any service"


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_each_alert_says_what_to_do(path):
    for alert in path.read_text().split("- alert: ")[1:]:
        assert "summary: " in alert and "action: " in alert and "severity: " in alert, alert
