"""The files of a deployment name what is there: sources, modules, settings, paths, metrics."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from flask import Flask

from bot.intake import health
from bot.intake.health import Checks
from bot.process import metrics
from bot.settings import NAMES
from tests.support.rows import every_row

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = ["compose.yaml", "compose.supabase.yaml"]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SETTINGS = {name.upper() for name in NAMES}
OF_THE_IMAGE = {"PYTHONUNBUFFERED"}
OF_COMPOSE = {"POSTGRES_PASSWORD"}


class Loader(yaml.SafeLoader):
    """YAML with Compose's tag for what is taken out again."""


Loader.add_constructor("!reset", lambda loader, node: "reset")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile, a pair for each instruction."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def compose(file: str) -> dict[str, Any]:
    return dict(yaml.load((ROOT / file).read_text(encoding="utf-8"), Loader))


def copied() -> list[str]:
    arguments = [rest.split() for name, rest in instructions() if name == "COPY"]
    return [source for words in arguments for source in words[:-1]]


def test_the_image_holds_what_the_wheel_holds() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"only-include = (\[.*?\])", text)
    assert found is not None
    wheel = set(json.loads(found[1]))
    assert wheel == {*copied()} - {"requirements.txt", "requirements-vectors.txt", "LICENSE"}


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    allowed = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for source in copied():
        assert (ROOT / source).exists(), source
        assert f"!{source}" in allowed


def test_the_image_has_an_ordinary_user_and_settings_that_exist() -> None:
    made = dict(instructions())
    assert made["USER"].isdigit()
    assert made["USER"] != "0"
    names = {word.split("=")[0] for word in shlex.split(made["ENV"])}
    assert names <= SETTINGS | OF_THE_IMAGE


def test_the_health_check_asks_a_path_that_is_served() -> None:
    served = Flask("served")
    health.register(
        served, cast(Checks, SimpleNamespace(run=None, settings=SimpleNamespace(metrics_token="")))
    )  # nobody asks
    paths = {rule.rule for rule in served.url_map.iter_rules()}
    check = dict(instructions())["HEALTHCHECK"]
    assert set(re.findall(r"}(/\w+)'", check)) == {"/healthz"} <= paths
    program = json.loads(check[check.index("[") :])
    assert program[:2] == ["python", "-c"]
    compile(program[2], "HEALTHCHECK", "exec")


def commands() -> Iterator[list[str]]:
    yield json.loads(dict(instructions())["CMD"])
    for file in COMPOSE:
        services = compose(file)["services"].values()
        yield from (
            one["command"] for one in services if isinstance(one, dict) and "command" in one
        )


def test_every_command_is_a_module_that_is_there() -> None:
    for program, option, module in commands():
        assert (program, option) == ("python", "-m")
        assert find_spec(module), module


@every_row("file", COMPOSE)
def test_compose_names_settings_that_exist(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+)", text)) <= SETTINGS | OF_COMPOSE
    for name, service in compose(file)["services"].items():
        if isinstance(service, dict) and name != "postgres":
            assert set(service.get("environment", {})) <= SETTINGS


def test_compose_waits_for_services_in_a_way_they_can_fulfil() -> None:
    found = compose("compose.yaml")
    services = found["services"]
    assert set(compose("compose.supabase.yaml")["services"]) <= set(services)
    for service in services.values():
        for name, how in service.get("depends_on", {}).items():
            healthy = how["condition"] == "service_healthy"
            assert healthy is ("test" in services[name].get("healthcheck", {})), name
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in found["volumes"]
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), "the proxy stands in front"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_what_is_installed_with_settings_that_exist(unit: Path) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text(encoding="utf-8"))
    service = parser["Service"]
    assert service["Environment"].split("=")[0] in SETTINGS
    assert service["RestartPreventExitStatus"] == "2", "a wrong setting stays wrong"
    program, *arguments = service["ExecStart"].split()
    assert Path(program).parent == Path("/opt/feishu-memory-bot/bin")
    if arguments:
        assert arguments[:2] == ["-P", "-m"]
        assert find_spec(arguments[2])
    else:
        scripts = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        assert f'\n{Path(program).name} = "scripts.installed:main"' in scripts


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_the_unit(unit: Path, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    program = shutil.which("true")
    text = re.sub(r"/opt/\S+/bin/\S+", str(program), unit.read_text(encoding="utf-8"))
    text = text.replace("file:///opt/feishu-memory-bot/README.md", "https://example.com")
    file = tmp_path / unit.name.replace("@", "@1")
    file.write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "verify", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_proxies_pass_on_the_webhook_alone() -> None:
    nginx = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    caddy = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    assert re.findall(r"location (\S+)", nginx) == ["/webhook/", "/"]
    assert re.findall(r"^\s+path (.*)$", caddy, re.MULTILINE) == ["/webhook/event /webhook/card"]
    tunnel = yaml.safe_load((DEPLOY / "cloudflared.yml").read_text(encoding="utf-8"))["ingress"]
    assert [one.get("path") for one in tunnel] == ["^/webhook/(event|card)$", None]
    assert tunnel[-1]["service"] == "http_status:404"
    assert nginx.count("proxy_pass") == caddy.count("reverse_proxy") == 1


def rules() -> list[dict[str, Any]]:
    found = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in found["groups"] for rule in group["rules"]]


def test_alerts_ask_for_metrics_that_exist() -> None:
    there = set(re.findall(r'"(bot_\w+)"', Path(str(metrics.__file__)).read_text("utf-8")))
    asked = {name for rule in rules() for name in re.findall(r"\bbot_\w+", rule["expr"])}
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked} <= there


def test_alerts_say_what_to_do_with_words_that_the_program_uses() -> None:
    text = "\n".join(one.read_text("utf-8") for one in (ROOT / "bot").rglob("*.py"))
    text += "\n".join(one.read_text("utf-8") for one in (ROOT / "memory").rglob("*.py"))
    for rule in rules():
        told = rule["annotations"]["summary"] + rule["annotations"]["action"]
        assert rule["annotations"]["action"].endswith(".")
        assert set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", told)) <= SETTINGS
        for event in re.findall(r"\b(?:job)\.\w+", told):
            assert f'"{event}"' in text, event


def test_the_alerts_do_what_their_tests_say() -> None:
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed")
    command = ["promtool", "test", "rules", str(DEPLOY / "prometheus" / "alerts_test.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
