# SPDX-License-Identifier: Apache-2.0
"""The dashboards of deploy/grafana: every expression is one that Prometheus takes, and every metric and label in it is one that a running service has."""
import json
import re

import pytest
import yaml

from tests.harness import promtool
from tests.harness.processes import HOME

BOARDS = sorted((HOME / "deploy" / "grafana").glob("*.json"))
SOURCES = "\n".join(path.read_text() for path in (HOME / "services" / "archiver").rglob("*.c"))
WITH_STORAGE = {"stentor_archiver_log_unstored_seconds", "stentor_archiver_units", "stentor_archiver_units_failed"}  # an archiver without object storage has no series
GIVEN = {"job", "instance", "le"}  # by Prometheus; le: the name without _bucket has none


def expressions(path):
    """(panel's title, expression) with the interval that Grafana would put in."""
    for panel in json.loads(path.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m")


def test_there_are_five_and_they_are_provisioned():
    boards = [json.loads(path.read_text()) for path in BOARDS]
    assert [path.stem for path in BOARDS] == ["batches", "deliverability", "pipeline", "stores", "tenants"]
    assert len({board["uid"] for board in boards}) == 5
    for board in boards:
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids) and all(panel["datasource"]["uid"] == "${datasource}" for panel in board["panels"] if panel["type"] != "row")
        places = [(panel["gridPos"]["y"], panel["gridPos"]["x"]) for panel in board["panels"]]
        assert places == sorted(set(places)), "no panel is on another"
    compose = yaml.safe_load((HOME / "deploy" / "docker" / "compose.yaml").read_text())["services"]["grafana"]["volumes"]
    provider = yaml.safe_load((HOME / "deploy" / "docker" / "dashboards.yaml").read_text())["providers"][0]["options"]["path"]
    assert f"../grafana:{provider}:ro" in compose and "./dashboards.yaml:/etc/grafana/provisioning/dashboards/stentor.yaml:ro" in compose


def test_prometheus_takes_every_expression(tmp_path):
    rules = [{"record": f"panel:{path.stem}:{n}", "expr": expression} for path in BOARDS for n, (_, expression) in enumerate(expressions(path))]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = promtool.run("check", "rules", file)
    assert done.returncode == 0 and f"{len(rules)} rules found" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_metric_and_label_is_there(path, pipeline):
    series = "\n".join(service.get("/metrics")[1] for service in pipeline.services.values())
    labels = {}
    for name, pairs in re.findall(r"^([a-z_]+)(?:\{(.*)\})? ", series, re.M):
        labels.setdefault(name, set()).update(re.findall(r'([a-z_]+)="', pairs))
    found = list(expressions(path))
    assert len(found) > 10
    for title, expression in found:
        parts = re.findall(r"\b((?:stentor|process)_[a-z_]+)(?:\{([^}]*)\})?", expression)
        assert parts, (title, expression)
        grouped = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
        for name, selected in parts:
            if name in WITH_STORAGE and name not in labels:
                assert f'"{name}"' in SOURCES
                continue
            assert name in labels, (title, name)
            missing = (grouped | set(re.findall(r"([a-z_]+)=", selected))) - labels[name] - GIVEN
            assert not missing, (title, name, missing)
