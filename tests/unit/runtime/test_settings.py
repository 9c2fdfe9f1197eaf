"""Settings: sources and their order, and errors that name the key."""

from pathlib import Path

import pydantic
import pytest

from armada.model.errors import StartupRefused
from armada.runtime.settings import Settings, load_settings


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"ARMADA_{name.upper()}", raising=False)


def test_defaults_listen_on_this_machine_only() -> None:
    settings = load_settings()
    assert (settings.host, settings.grpc_port, settings.http_port, settings.metrics_port) == (
        "127.0.0.1",
        50051,
        8080,
        9000,
    )


def test_later_sources_are_stronger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("grpc_port: 1\nhttp_port: 1\nmetrics_port: 1\npool: one\nsubmission: {a: 1, b: 1}\n")
    second.write_text("http_port: 2\nsubmission: {b: 2}\n")
    monkeypatch.setenv("ARMADA_METRICS_PORT", "3")
    settings = load_settings(files=[first, second], overrides={"pool": "four"})
    assert (settings.grpc_port, settings.http_port, settings.metrics_port, settings.pool) == (1, 2, 3, "four")
    assert settings.submission == {"a": 1, "b": 2}


def test_the_command_line_is_stronger_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMADA_GRPC_PORT", "1")
    assert load_settings(overrides={"grpc_port": 2}).grpc_port == 2


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("grpc_port: 70000\n", "grpc_port"),
        ("grpc_prt: 1\n", "grpc_prt"),
        ("log_level: loud\n", "log_level"),
        ("- a list\n", "settings by name"),
        ("a: [\n", "while parsing"),
        ("a: 2020-13-45\n", "a value in it can't be read: month must be in"),
        (f"a: {'9' * 5000}\n", "a value in it can't be read"),
        ("a: !!timestamp soon\n", "a value in it can't be read"),
        ("a: !!bool perhaps\n", "a value in it can't be read"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, content: str, named: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(content)
    with pytest.raises(StartupRefused, match=named):
        load_settings(files=[file])


def test_what_is_wrong_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMADA_SUBMISSION", "no json")
    with pytest.raises(StartupRefused, match="submission"):
        load_settings()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match=r"none\.yaml"):
        load_settings(files=[tmp_path / "none.yaml"])


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("# nothing\n")
    assert load_settings(files=[file]) == load_settings()


def test_settings_do_not_change() -> None:
    settings = load_settings()
    with pytest.raises(pydantic.ValidationError):
        settings.host = "::"


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
