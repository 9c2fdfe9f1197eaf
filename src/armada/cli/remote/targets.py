"""Which server to talk to and as whom: configuration files, contexts, environment and flags, resolved once.

The file is Armada's: `currentContext`, `contexts.<name>.{armadaUrl, basicAuth, execAuth, forceNoTls, ...}`, or the
older form with these keys at top level. Keys are case-insensitive; context names are lower case. Later wins:
`armadactl-defaults.yaml` beside the executable, then `--config FILE` or `$HOME/.armadactl.yaml`, then the variables
ARMADAURL and CURRENTCONTEXT, then flags.
"""

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from armada.cli.failures import CommandFailed, ExitStatus

DEFAULT_URL: Final = "localhost:50051"
USER_FILE: Final = ".armadactl.yaml"
DEFAULTS_FILE: Final = "armadactl-defaults.yaml"

_UNSUPPORTED: Final = (
    "kubernetesnativeauth",
    "openidauth",
    "openiddeviceauth",
    "openidpasswordauth",
    "openidclientcredentialsauth",
    "openidkubernetesauth",
)
_CURRENT_LINE: Final = re.compile(r"^currentContext[ \t]*:.*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class BasicCredentials:
    """A name and password, sent with every call."""

    username: str
    password: str


@dataclass(frozen=True, slots=True)
class ExecCredentials:
    """A command whose trimmed output is a bearer token; it runs anew for each call."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    interactive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One server as this user reaches it. `name` is empty when no context was configured."""

    name: str = ""
    url: str = DEFAULT_URL
    credentials: BasicCredentials | ExecCredentials | None = None
    plaintext: bool = True
    log_command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What the configuration files and the environment say, before flags."""

    values: dict[str, Any]
    source: Path | None = None
    current: str = ""

    @property
    def contexts(self) -> dict[str, dict[str, Any]]:
        """The contexts by lower-case name, their keys in lower case."""
        found = self.values.get("contexts") or {}
        if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
            raise _wrong(self.source, "contexts must map each name to its settings")
        return found


def _wrong(source: Path | None, what: str) -> CommandFailed:
    where = f"config file {source}" if source else "the configuration"
    return CommandFailed(f"{where}: {what}", ExitStatus.USAGE)


def _lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key).lower(): _lowered(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_lowered(item) for item in value]
    return value


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"can't read config file {path}: {error}", ExitStatus.USAGE) from error
    except yaml.YAMLError as error:
        raise CommandFailed(f"config file {path} is not YAML: {error}", ExitStatus.USAGE) from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise _wrong(path, "must be a mapping")
    lowered: dict[str, Any] = _lowered(loaded)
    return lowered


def load(config_file: Path | None, environment: Mapping[str, str]) -> Configuration:
    """Read the configuration; `config_file` must exist when it is given.

    Raises:
        CommandFailed: a file is missing, unreadable or of the wrong form.
    """
    values: dict[str, Any] = {}
    beside = Path(sys.argv[0]).resolve().parent / DEFAULTS_FILE
    if beside.is_file():
        values |= _read(beside)
    source: Path | None = None
    if config_file is not None:
        if not config_file.is_file():
            raise CommandFailed(f"could not find config file {config_file}", ExitStatus.USAGE)
        source = config_file
    else:
        home = environment.get("HOME", "")
        if home and (Path(home) / USER_FILE).is_file():
            source = Path(home) / USER_FILE
    if source is not None:
        values |= _read(source)
    current = environment.get("CURRENTCONTEXT") or values.get("currentcontext") or ""
    return Configuration(values=values, source=source, current=str(current).lower())


def resolve(
    configuration: Configuration, *, named: str | None, url: str | None, environment: Mapping[str, str]
) -> Target:
    """The target that the configuration, the environment and the flags (`named` context, `url`) choose.

    Raises:
        CommandFailed: the context does not exist, or its settings are wrong or not supported.
    """
    name = (named or configuration.current).lower()
    contexts = configuration.contexts
    if name and name not in contexts and (named or contexts):
        known = ", ".join(sorted(contexts)) or "none"
        raise CommandFailed(
            f"context {name} not found in the configuration (contexts: {known})",
            ExitStatus.USAGE,
            hint=f"looked in {configuration.source or '$HOME/' + USER_FILE}",
        )
    settings = contexts.get(name, {}) if name in contexts else configuration.values
    address = url or environment.get("ARMADAURL") or str(settings.get("armadaurl") or DEFAULT_URL)
    plaintext = bool(settings.get("forcenotls")) or _is_loopback(address)
    return Target(
        name=name if name in contexts else "",
        url=address,
        credentials=_credentials(settings, configuration.source),
        plaintext=plaintext,
        log_command=str(configuration.values.get("kubectlcommandtemplate") or ""),
    )


def _is_loopback(url: str) -> bool:
    host = url.removeprefix("ipv4:").removeprefix("ipv6:")
    return "localhost" in url or host.startswith(("127.", "[::1]", "unix:"))


def _credentials(settings: Mapping[str, Any], source: Path | None) -> BasicCredentials | ExecCredentials | None:
    if basic := settings.get("basicauth"):
        if not isinstance(basic, dict) or not basic.get("username"):
            raise _wrong(source, "basicAuth needs username and password")
        return BasicCredentials(str(basic["username"]), str(basic.get("password") or ""))
    for key in _UNSUPPORTED:
        if settings.get(key):
            raise _wrong(source, f"credentials of kind {key} are not supported yet; use basicAuth or execAuth")
    if execution := settings.get("execauth"):
        if not isinstance(execution, dict) or not execution.get("cmd"):
            raise _wrong(source, "execAuth needs cmd")
        extra = execution.get("env") or []
        return ExecCredentials(
            command=(str(execution["cmd"]), *(str(part) for part in execution.get("args") or ())),
            environment=tuple((str(pair.get("name")), str(pair.get("value") or "")) for pair in extra),
            interactive=bool(execution.get("interactive")),
        )
    return None


def set_current(path: Path, name: str) -> None:
    """Make `name` the current context in the file, leaving every other line as it is.

    The file is replaced in one step and keeps its permissions.

    Raises:
        CommandFailed: the file can't be written.
    """
    replacement = f"currentContext: {name}"
    try:
        text = path.read_text(encoding="utf-8")
        changed, count = _CURRENT_LINE.subn(lambda _match: replacement, text, count=1)
        if count == 0:
            changed = f"{replacement}\n{text}"
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as fresh:
            fresh.write(changed)
        Path(fresh.name).chmod(path.stat().st_mode & 0o777)
        os.replace(fresh.name, path)  # noqa: PTH105 - the pair of Path.replace for a temporary file's name
    except OSError as error:
        raise CommandFailed(f"can't write config file {path}: {error}") from error
