"""What an agent is given: our doors, no key of the user's, nothing that leads past the proxy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.environment import agent_environment
from tests.harness.fake_stage import AGENT, run_plan

DOOR = "http://127.0.0.1:4711"


def environment(folder: Path, **env: str) -> dict[str, str]:
    """The environment of an agent whose `agent.yaml` says this."""
    return agent_environment(run_plan(), folder=folder, port=4711, agent=replace(AGENT, env=env), started=12.5)


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"])
def test_real_keys_stay_with_the_user(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the user's shell is replaced, unless the agent's own file names one."""
    monkeypatch.setenv(name, "sk-real")
    assert environment(tmp_path)[name] == "stand-in"
    assert environment(tmp_path, **{name: "mine"})[name] == "mine"


@pytest.mark.parametrize(
    "name",
    [
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
        "OPENAI_API_BASE",
        "OPENAI_ORG_ID",
        "ALL_PROXY",
        "all_proxy",
        "PYTHONPATH",
    ],
)
def test_what_leads_elsewhere_is_not_inherited(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collectors, other doors and secrets of the user's shell do not reach the agent; its own file may set them."""
    monkeypatch.setenv(name, "https://collector.example")
    assert name not in environment(tmp_path)
    assert environment(tmp_path, **{name: "mine"})[name] == "mine"


def test_both_spellings_of_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads only the lower-case variables, as curl does, meets the proxy as well, whatever the shell says."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "elsewhere")
    given = environment(tmp_path)
    assert {given[name] for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")} == {DOOR}
    assert (given["NO_PROXY"], given["no_proxy"]) == ("", "")


def test_no_certificate_is_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no TLS to read along, so the user's own certificates are left as they are."""
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/mine.pem")
    monkeypatch.delenv("NODE_EXTRA_CA_CERTS", raising=False)
    given = environment(tmp_path)
    assert given["SSL_CERT_FILE"] == "/etc/mine.pem"
    assert "NODE_EXTRA_CA_CERTS" not in given
