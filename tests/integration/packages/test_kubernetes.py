# SPDX-License-Identifier: Apache-2.0
"""The manifests of deploy/kubernetes without a cluster: what they name exists, what they promise is so, and no field is misspelt."""
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.harness.processes import BIN, HOME, NEIGHBOURS, SERVICES, free_port, wait_until

FOLDER = HOME / "deploy/kubernetes"
OVERLAYS = ["overlays/dev", "overlays/r3", "overlays/scale", "outbox-relay"]
OPERATORS = {"stentor-tls", "stentor-outbox-relay"}  # Secrets that README.md asks the operator for
PROJECTORS = {"archiver", "gateway"}
LANES = ["CRITICAL", "HIGH", "NORMAL", "LOW"]


def _renderer():
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    return ["kubectl", "kustomize"] if shutil.which("kubectl") else None


RENDERS = pytest.mark.skipif(_renderer() is None, reason="needs kustomize (a package of Debian 13) or kubectl")


def _files():
    return sorted(path for path in FOLDER.rglob("*.yaml") if "node_modules" not in path.parts)


def _objects(path):
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def _of_kind(kind):
    return [each for path in _files() for each in _objects(path) if isinstance(each, dict) and each.get("kind") == kind]


def _walk(value):
    """Every mapping in it."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from _walk(each)


def _said(*words):
    done = subprocess.run([BIN / words[0], *words[1:]], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _options(name):
    """{option: default} of a service."""
    return dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", _said(f"stentor-{name}", "--options-markdown"), re.M))


def _deployments():
    return {each["metadata"]["name"]: each for each in _of_kind("Deployment") if "selector" in each["spec"]}


# ---- what is named exists ---------------------------------------------------------------------------------------------------


def test_there_is_a_deployment_with_a_budget_for_every_service():
    ours = set(SERVICES + NEIGHBOURS)
    assert ours | {"nginx", "mailbox"} == set(_deployments())
    assert ours | {"nginx", "nats"} == {each["metadata"]["name"] for each in _of_kind("PodDisruptionBudget")}


@pytest.mark.parametrize("name", [*SERVICES, *NEIGHBOURS])
def test_a_service_runs_its_program_with_its_own_secret(name):
    pod = _deployments()[name]["spec"]["template"]["spec"]
    assert [each["name"] for each in pod["containers"]] == ["service"]  # by this name every-service/ reaches it
    assert pod["containers"][0]["command"] == [f"stentor-{name}", "--config", f"/etc/stentor/{name}.conf"]
    assert (BIN / f"stentor-{name}").exists()
    assert [each["secret"]["secretName"] for each in pod["volumes"] if "emptyDir" not in each] == [f"stentor-{name}"]
    for port in pod["containers"][0].get("ports", []):
        assert str(port["containerPort"]) in {value for option, value in _options(name).items() if option.endswith("_PORT")}


def test_every_option_that_a_manifest_names_is_one_of_its_program():
    known = set().union(*(_options(name) for name in [*SERVICES, *NEIGHBOURS]))
    literals = [line.split("=")[0] for path in _files() for each in _objects(path) for maps in _walk(each) for line in maps.get("literals", [])]
    assert literals and set(literals) <= known
    patched = [each for each in _of_kind("Deployment") if each["metadata"]["name"] in SERVICES + NEIGHBOURS]
    for each in patched:
        for maps in _walk(each):
            for variable in maps.get("env", []):
                assert variable["name"] in _options(each["metadata"]["name"]), variable


@pytest.fixture(name="secrets", scope="module")
def _secrets(tmp_path_factory):
    """{Secret: its files} that `stentor init secrets` makes."""
    folder = tmp_path_factory.mktemp("etc")
    _said("stentor", "init", "files", "--folder", folder, "--seen-as", "/etc/stentor")
    items = json.loads(_said("stentor", "init", "secrets", "--folder", folder, "--namespace", "stentor"))["items"]
    return {each["metadata"]["name"]: set(each["stringData"]) for each in items}


def test_every_secret_that_a_manifest_names_is_made_by_init_or_asked_for_in_the_readme(secrets):
    named = {maps[key] for path in _files() for each in _objects(path) for maps in _walk(each) for key in ("secretName",) if key in maps}
    named |= {maps[key]["name"] for path in _files() for each in _objects(path) for maps in _walk(each) for key in ("secret", "superuserSecret")
              if "name" in maps.get(key, {})}
    assert OPERATORS < named and named - OPERATORS <= set(secrets)
    assert all(name in (FOLDER / "README.md").read_text() for name in OPERATORS)
    for name in SERVICES:
        assert f"{name}.conf" in secrets[f"stentor-{name}"]
    assert "nats-accounts.conf" in secrets["stentor-nats"] and {"username", "password"} <= secrets["stentor-postgres"]


def test_a_network_policy_lets_each_service_reach_what_its_options_ask_for():
    policies = {each["metadata"]["name"]: each["spec"] for each in _of_kind("NetworkPolicy")}
    assert policies["nothing"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}

    def chosen(selector):
        return set(selector["matchExpressions"][0]["values"])
    services = {*SERVICES, "order-saga", "webhook"}
    with_database = {name for name in services if "STENTOR_DATABASE_URL" in _options(name)}
    assert chosen(policies["to-nats"]["podSelector"]) == chosen(policies["nats"]["ingress"][0]["from"][0]["podSelector"]) == services | {"init", "erasures"}
    assert chosen(policies["to-postgres"]["podSelector"]) == chosen(policies["postgres"]["ingress"][0]["from"][0]["podSelector"]) == with_database | {"init", "erasures"}
    assert chosen(policies["from-users"]["podSelector"]) == {each["metadata"]["name"] for each in _of_kind("Service")} & services
    assert policies["from-users"]["ingress"][0]["from"] == [{"podSelector": {"matchLabels": {"app": "nginx"}}}]
    assert chosen(policies["nginx"]["egress"][0]["to"][0]["podSelector"]) == chosen(policies["from-users"]["podSelector"])


def test_the_ingress_sends_everything_to_nginx_and_nginx_reaches_the_services(tmp_path):
    """An Ingress tells no methods apart: GET /v1/notifications and GET /v1/batches/ID/notifications are gateway's."""
    paths = _of_kind("Ingress")[0]["spec"]["rules"][0]["http"]["paths"]
    assert paths == [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "nginx", "port": {"name": "http"}}}}]
    container, = _deployments()["nginx"]["spec"]["template"]["spec"]["containers"]
    services = {each["metadata"]["name"]: each["spec"]["ports"][0] for each in _of_kind("Service")}
    env = {each["name"]: each["value"] for each in container["env"]}
    upstreams = {env[f"STENTOR_NGINX_{name}"] for name in ("INGEST", "GATEWAY", "WEBHOOK")}
    assert upstreams == {f"{name}:{services[name]['port']}" for name in ("ingest", "gateway", "webhook-receiver")}
    assert env["STENTOR_NGINX_LISTEN"].endswith(f":{services['nginx']['port']}") and container["ports"][0]["containerPort"] == services["nginx"]["port"]
    # `serve routes` by what the pod has: no other variable, and a folder of its own alone. Of names there are none here.
    assert container["command"] == ["serve", "routes"]
    script = (HOME / "deploy/docker/serve").read_text().replace("home=/usr/share/stentor", f"home={HOME}").replace("/tmp/nginx", str(tmp_path / "nginx"))
    port = free_port()
    env.update(PATH=os.environ["PATH"], STENTOR_NGINX_LISTEN=f"127.0.0.1:{port}", **{f"STENTOR_NGINX_{name}": "127.0.0.1:1" for name in ("INGEST", "GATEWAY", "WEBHOOK")})
    with subprocess.Popen(["bash", "-c", script, "serve", "routes"], env=env) as child:
        try:
            wait_until(lambda: _status(port, "/healthz") == 200, 20, "nginx")
            assert _status(port, "/console/") == _status(port, "/v1/notifications") == 502 and _status(port, "/other") == 404
        finally:
            child.terminate()
        assert child.wait(20) == 0


def _status(port, path):
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


# ---- scaling --------------------------------------------------------------------------------------------------------------------


def test_each_scaler_asks_for_consumers_that_there_are():
    table = (HOME / "common/bus/topology/topology.c").read_text()
    consumers = set(re.findall(r'^ +\{"(\w+)", +"([\w-]+)", +"stentor-[\w-]+", +\d+, +\d+, +\w+, +\w+\},', table, re.M))
    assert len(consumers) > 10
    scalers = {each["metadata"]["name"]: each["spec"] for each in _of_kind("ScaledObject")}
    assert {spec["scaleTargetRef"]["name"] for spec in scalers.values()} == set(scalers) <= set(_deployments()) - PROJECTORS
    for name, spec in scalers.items():
        for each in spec["triggers"]:  # a map of anything, for a type
            assert each["type"] == "cpu" or set(each["metadata"]) == {"natsServerMonitoringEndpoint", "account", "stream", "consumer", "lagThreshold"}, each
        asked = {(each["metadata"]["stream"], each["metadata"]["consumer"]) for each in spec["triggers"] if each["type"] == "nats-jetstream"}
        assert asked and asked <= consumers and {consumer for _, consumer in asked} == {name}
        assert spec["minReplicaCount"] >= 2
    for name, stage in (("renderer", "REQUEST"), ("dispatcher", "RENDERED")):
        assert [each["metadata"]["stream"] for each in scalers[name]["triggers"]] == [f"{stage}_{lane}" for lane in LANES]


def test_scalers_ask_in_the_account_that_nats_config_makes(tmp_path):
    passwords = tmp_path / "passwords"
    users = ["admin", "cli", *SERVICES, "order-saga", "webhook"]
    passwords.write_text("".join(f"stentor-{name}=pw\n" for name in users))
    accounts = _said("stentor", "nats-config", "--passwords", passwords)
    named = {each["metadata"]["account"] for spec in _of_kind("ScaledObject") for each in spec["spec"]["triggers"] if "account" in each["metadata"]}
    assert len(named) == 1 and re.search(rf"^  {named.pop()}[:= ]*\{{", accounts, re.M), accounts[:400]


# ---- NATS -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlay", ["base", "overlays/r3"])
def test_nats_server_takes_the_configuration(overlay, tmp_path):
    version = tuple(map(int, re.findall(r"\d+", subprocess.run(["nats-server", "--version"], capture_output=True, text=True).stdout)[:2]))
    if overlay != "base" and version < (2, 10):
        pytest.skip("sync_interval: always needs nats-server 2.10")
    shutil.copy(FOLDER / overlay / "nats.conf", tmp_path / "server.conf")
    (tmp_path / "nats-accounts.conf").write_text("")
    done = subprocess.run(["nats-server", "-t", "-c", tmp_path / "server.conf"], capture_output=True, text=True, env={**os.environ, "POD_NAME": "nats-0"})
    assert done.returncode == 0, done.stderr


def test_r3_is_base_with_three_nodes_that_write_before_they_answer():
    base, three = ((FOLDER / folder / "nats.conf").read_text() for folder in ("base", "overlays/r3"))

    def lines(text):
        return [line for line in text.splitlines() if line and not line.startswith("#")]
    added = [line for line in lines(three) if line not in lines(base)]
    assert "sync_interval: always" in added[0] and added[1].startswith("cluster")
    assert all(f"nats://nats-{n}.nats-nodes:6222" in three for n in range(3))
    assert [line for line in lines(base) if line not in lines(three)] == ["jetstream { store_dir: \"/data\", max_file_store: 1TB }"]


# ---- what kustomize makes of it ---------------------------------------------------------------------------------------------------


@pytest.fixture(name="rendered", scope="module", params=OVERLAYS)
def _rendered(request):
    done = subprocess.run([*_renderer(), FOLDER / request.param], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def _pods(rendered):
    pods = {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in rendered if each["kind"] in ("Deployment", "StatefulSet", "Job")}
    return {**pods, **{each["metadata"]["name"]: each["spec"]["jobTemplate"]["spec"]["template"]["spec"] for each in rendered if each["kind"] == "CronJob"}}


@RENDERS
def test_every_pod_is_unprivileged_writes_nothing_and_has_limits(rendered):
    pods = _pods(rendered)
    assert pods
    for name, pod in pods.items():
        assert pod["enableServiceLinks"] is False and pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["readOnlyRootFilesystem"] and own["allowPrivilegeEscalation"] is False and own["capabilities"] == {"drop": ["ALL"]}, name
            assert {"cpu", "memory"} <= set(container["resources"]["limits"]) and {"cpu", "memory"} <= set(container["resources"]["requests"]), name


@RENDERS
def test_no_image_is_latest(rendered):
    images = [container["image"] for pod in _pods(rendered).values() for container in pod["containers"]]
    images += [each["spec"]["imageName"] for each in rendered if each["kind"] == "Cluster"]
    for image in images:
        assert re.search(r":\d[\w.-]*$", image), image


@RENDERS
def test_every_service_is_asked_drains_and_is_spread(rendered):
    for name in set(_pods(rendered)) & set(SERVICES + NEIGHBOURS):
        pod = _pods(rendered)[name]
        service = pod["containers"][0]
        admin = [port["name"] for port in service["ports"] if port["containerPort"] == 9400]
        for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
            assert service[probe]["httpGet"] == {"path": path, "port": admin[0]}, name
        assert pod["terminationGracePeriodSeconds"] * 1000 > int(_options(name)["STENTOR_DRAIN_MS"]), name
        assert {each["topologyKey"] for each in pod["topologySpreadConstraints"]} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}, name


@RENDERS
def test_every_file_that_is_mounted_and_every_map_that_is_named_is_there(rendered):
    maps = {each["metadata"]["name"] for each in rendered if each["kind"] == "ConfigMap"}
    named = {value["name"] for each in rendered for found in _walk(each) for key, value in found.items() if key in ("configMapRef", "configMap")}
    assert named <= maps | {"settings"} and (named <= maps or not maps)


def _settings_of(name, folder):
    return dict(re.findall(r'^(STENTOR_\w+)="?(.*?)"?$', (folder / f"{name}.conf").read_text(), re.M))


@RENDERS
@pytest.mark.parametrize("overlay, mode", [("overlays/dev", "ReadWriteOnce"), ("overlays/r3", "ReadWriteMany"), ("overlays/scale", "ReadWriteMany")])
def test_epoch_keys_are_where_the_settings_of_init_look_for_them_and_ingest_alone_writes(overlay, mode, tmp_path):
    done = subprocess.run([*_renderer(), FOLDER / overlay], capture_output=True, text=True, timeout=60)
    rendered = [each for each in yaml.safe_load_all(done.stdout) if each]
    claims = {each["metadata"]["name"]: each["spec"]["accessModes"] for each in rendered if each["kind"] == "PersistentVolumeClaim"}
    assert claims == {"epochs": [mode], "epochs-dumps": [mode]}
    _said("stentor", "init", "files", "--folder", tmp_path / "etc", "--seen-as", "/etc/stentor")
    pods = _pods(rendered)
    for name in [*SERVICES, "order-saga", "webhook", "erasures"]:
        claimed = {each["name"]: each["persistentVolumeClaim"]["claimName"] for each in pods[name]["volumes"] if "persistentVolumeClaim" in each}
        mounts = {each["mountPath"]: each.get("readOnly", False) for each in pods[name]["containers"][0]["volumeMounts"] if each["name"] in claimed}
        settings = _settings_of("cli" if name == "erasures" else name, tmp_path / "etc")
        wanted = {settings[key] for key in ("STENTOR_EPOCH_KEYS_DIR", "STENTOR_KEYS_DUMP_DIR") if key in settings}
        assert set(mounts) == wanted and set(mounts.values()) <= {name != "ingest"}, name
        assert all(name == claim for name, claim in claimed.items())


@RENDERS
def test_open_erasures_are_run_every_hour_by_one_job_at_a_time(rendered):
    found = [each["spec"] for each in rendered if each["kind"] == "CronJob" and each["metadata"]["name"] == "erasures"]
    for spec in found:
        assert re.fullmatch(r"\d+ \* \* \* \*", spec["schedule"]) and spec["concurrencyPolicy"] == "Forbid"
        pod = spec["jobTemplate"]["spec"]["template"]["spec"]
        assert pod["containers"][0]["command"] == ["stentor", "--config", "/etc/stentor/cli.conf", "erase", "run"]
        assert [each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each] == ["stentor-operator"]
    assert len(found) == any(each["kind"] == "Job" for each in rendered)


@RENDERS
def test_nothing_says_how_many_of_what_keda_scales():
    done = subprocess.run([*_renderer(), FOLDER / "overlays/scale"], capture_output=True, text=True, timeout=60)
    rendered = [each for each in yaml.safe_load_all(done.stdout) if each]
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in rendered if each["kind"] == "ScaledObject"}
    counts = {each["metadata"]["name"]: each["spec"].get("replicas") for each in rendered if each["kind"] == "Deployment"}
    assert scaled == {name for name, count in counts.items() if count is None} and all(counts[name] == 2 for name in PROJECTORS)
    cluster = next(each["spec"] for each in rendered if each["kind"] == "Cluster")
    assert cluster["instances"] == 3 and cluster["postgresql"]["synchronous"] == {"method": "any", "number": 1, "dataDurability": "required"}
    nats = next(each["spec"] for each in rendered if each["kind"] == "StatefulSet")
    init = next(each["spec"] for each in rendered if each["kind"] == "Job")
    assert nats["replicas"] == 3 and "--replicas" in init["template"]["spec"]["containers"][0]["args"]


# ---- types ------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(name="check", scope="module")
def _check():
    """check(FILE...) of deploy/kubernetes/check with its packages, which are fetched once."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("needs Node.js and npm: apt-get install nodejs npm")
    place = HOME / "build/manifest-check"
    place.mkdir(parents=True, exist_ok=True)
    lock = (FOLDER / "check/package-lock.json").read_text()
    done = place / "done"
    for path in (FOLDER / "check").glob("*.*"):
        shutil.copy(path, place)
    if not done.exists() or done.read_text() != lock:
        fetched = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=place, capture_output=True, text=True, timeout=600)
        if fetched.returncode != 0:
            pytest.skip("the npm registry cannot be reached from here")
        done.write_text(lock)

    def run(*files):
        return subprocess.run(["node", place / "check.mjs", *files], capture_output=True, text=True, timeout=120)
    return run


@pytest.mark.long
@RENDERS
def test_no_field_is_misspelt_and_none_is_missing(check, tmp_path):
    files = []
    for overlay in OVERLAYS:
        files.append(tmp_path / f"{Path(overlay).name}.yaml")
        files[-1].write_text(subprocess.run([*_renderer(), FOLDER / overlay], capture_output=True, text=True, check=True, timeout=60).stdout)
    done = check(*files)
    assert done.returncode == 0 and "objects, nothing to say" in done.stdout, done.stdout + done.stderr


@pytest.mark.long
@RENDERS
@pytest.mark.parametrize("right, wrong, named", [
    ("livenessProbe:", "livenesProbe:", "livenesProbe"), ("maxUnavailable: 1", "maxUnavailabel: 1", "maxUnavailabel"),
    ("minReplicaCount:", "minReplicas:", "minReplicas"),
    ("dataDurability:", "durability:", "durability"), ("        topologyKey: kubernetes.io/hostname\n", "", "topologyKey")])
def test_a_misspelt_field_is_named(check, tmp_path, right, wrong, named):
    text = subprocess.run([*_renderer(), FOLDER / "overlays/scale"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert right in text
    path = tmp_path / "wrong.yaml"
    path.write_text(text.replace(right, wrong))
    done = check(path)
    assert done.returncode == 1 and named in done.stdout, done.stdout
