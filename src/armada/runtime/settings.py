"""All settings of the processes: typed, documented, with the unit in the name, frozen once read.

Sources, the later the stronger: defaults, YAML files in the order given, environment variables (`ARMADA_` and the
setting's name in capitals), what was said on the command line.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from armada.model.errors import InvalidRequest, StartupRefused
from armada.runtime.yaml_values import yaml_values

_OTHER_NAMES: Final = {"priorityOverride": "priority_override", "pricingApi": "pricing_api"}
"""Sections that a file may also call as the reference's files do."""


class Settings(BaseSettings):
    """What an operator can say. Every value has a default that works on one machine."""

    model_config = SettingsConfigDict(env_prefix="ARMADA_", frozen=True, extra="forbid")

    data_dir: Path = Field(Path("armada-data"), description="Folder of the log, the history and the machine's pods.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    grpc_port: int = Field(50051, ge=0, le=65_535, description="Port of all gRPC services; 0 takes any free one.")
    http_port: int = Field(8080, ge=0, le=65_535, description="Port of the health page; 0 takes any free one.")
    metrics_port: int = Field(9000, ge=0, le=65_535, description="Port of the metrics page; 0 takes any free one.")
    allow_anonymous_anywhere: bool = Field(
        default=False,
        description="Let callers without credentials in even when `host` is not a loopback address.",
    )
    simulate: str = Field("", description="Simulated clusters of `armada up`, as CLUSTERSxNODES.")
    simulate_file: Path | None = Field(None, description="Simulated clusters of `armada executor`, described in YAML.")
    simulation_seed: int = Field(0, ge=0, description="Seed of what simulated clusters draw.")
    server_url: str = Field("127.0.0.1:50051", description="The control plane that an executor speaks to.")
    executor_id: str = Field("", description="Name of this executor; empty means the machine's name.")
    pool: str = Field("default", description="Pool of this machine's node and of simulated ones.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="What is worth a log line.")
    log_format: Literal["auto", "console", "json"] = Field(
        "auto", description="Form of log lines; `auto` is console on a terminal and JSON elsewhere."
    )
    round_delay_ms: int = Field(
        5, ge=0, le=60_000, description="Time from a change to the round that looks at it: changes gather meanwhile."
    )
    schedule_period_ms: int = Field(10_000, ge=10, description="While jobs wait, a round starts at least this often.")
    executor_timeout_ms: int = Field(
        3_600_000, ge=1_000, description="Silence after which an executor's runs are given up."
    )
    node_timeout_ms: int = Field(
        600_000,
        ge=0,
        description="Time after which the runs of a node are given up that its executor reports no more; 0 is never.",
    )
    fleet_settle_ms: int = Field(
        2_000, ge=0, description="Time after a new executor's first word in which no job is rejected as unplaceable."
    )
    max_hold_ms: int = Field(
        30_000, ge=0, le=600_000, description="Longest time for which a lease exchange is held open."
    )
    max_streams: int = Field(2_000, ge=1, description="Event streams that may be open at once.")
    checkpoint_entries: int = Field(50_000, ge=100, description="Log entries between two checkpoints.")
    checkpoint_interval_s: int = Field(300, ge=1, description="Longest time between checkpoints while things change.")
    event_retention_s: int = Field(
        1_209_600, ge=60, description="Age at which entries leave the log, and with them the streams of job sets."
    )
    history_retention_days: int = Field(42, ge=1, description="Age at which ended jobs leave the history.")
    keep_capsules: int = Field(
        0, ge=0, le=1_000, description="Latest rounds of each pool that are kept for `armada replay`."
    )
    capsule_limit_mb: int = Field(
        512, ge=1, description="Size of all capsules together, in MB; the oldest make room for new ones."
    )
    shutdown_limit_ms: int = Field(10_000, ge=100, description="Time that an orderly stop may take.")
    submission: dict[str, Any] = Field(
        default_factory=dict, description="Limits and defaults of submissions, by the reference's keys."
    )
    scheduling: dict[str, Any] = Field(
        default_factory=dict, description="The scheduling policy, by the reference's keys."
    )
    metrics: dict[str, Any] = Field(
        default_factory=dict, description="What the metrics page shows, by the reference's keys."
    )
    priority_override: dict[str, Any] = Field(
        default_factory=dict, description="The service that overrides queues' priorities, by the reference's keys."
    )
    pricing_api: dict[str, Any] = Field(
        default_factory=dict, description="The service that knows what queues bid, by the reference's keys."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take only what is passed in: `load_settings` has put the sources in order."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def load_settings(*, files: Sequence[Path] = (), overrides: Mapping[str, object] | None = None) -> Settings:
    """Read the settings.

    Raises:
        StartupRefused: a file can't be read, or a value is wrong or unknown; the text names the key.
    """
    values: dict[str, Any] = {}
    for file in files:
        _merge(values, _read(file))

    try:
        _merge(values, EnvSettingsSource(Settings)())
        _merge(values, dict(overrides or {}))
        return Settings(**values)
    except SettingsError as error:
        raise StartupRefused(f"settings in the environment: {error}") from error
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise StartupRefused(f"settings: {faults}") from error


def _read(file: Path) -> dict[str, Any]:
    try:
        content = yaml_values(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InvalidRequest) as error:
        raise StartupRefused(f"settings file {file}: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise StartupRefused(f"settings file {file}: it must hold settings by name")
    return {_OTHER_NAMES.get(str(name), str(name)): values for name, values in content.items()}


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Put values over others; sections are merged key by key."""
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
