"""Settings of a service: environment variables with one prefix, checked before anything starts."""

import os
import sys
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from podium_core.domain.errors import PodiumError, invalid
from podium_core.runtime.grpc_transport import DEFAULT_MAX_CONNECTION_AGE_S
from podium_core.runtime.identity import TlsFiles

_MAX_PORT = 65_535
_USAGE = 2


def settings_config(service: str) -> SettingsConfigDict:
    """Return the model config of a service's settings: prefix `PODIUM_<SERVICE>_`, frozen, nothing extra."""
    return SettingsConfigDict(
        env_prefix=f"PODIUM_{service}_",
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )


class ProcessSettings(BaseSettings):
    """What every process is told, services and others. A subclass sets its `model_config`."""

    model_config = settings_config("PROCESS")

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least severe log lines to write. DEBUG also writes exception texts, which may hold content."""

    def check(self) -> None:
        """Read what the settings point to; raise PodiumError saying what to change. Extend in a subclass."""

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value


class ServiceSettings(ProcessSettings):
    """What every service is told. A subclass sets `model_config = settings_config("ROUTER")`."""

    model_config = settings_config("SERVICE")

    tls_cert_file: Path
    """PEM file with this service's certificate chain. New versions of all three are taken while it runs."""
    tls_key_file: Path
    """PEM file with this service's private key."""
    tls_ca_file: Path
    """PEM file with the CA that every service of this installation is certified by."""
    ops_listen: str = ""
    """host:port of /livez, /readyz and /metrics (Prometheus), such as 127.0.0.1:9464; plain HTTP without
    content. Empty: none."""
    otlp_endpoint: str = ""
    """OTLP/gRPC collector, such as https://collector:4317. Empty: no traces are made."""
    otlp_ca_file: Path | None = None
    """PEM file with the CA of an https collector. Default: tls_ca_file."""
    otlp_server_name: str = ""
    """Name that the certificate of an https collector carries, if not the endpoint's host: for Podium's own
    audit service audit.podium.internal."""
    otlp_insecure: bool = False
    """Allow an http:// collector that is not on loopback."""

    @property
    def tls(self) -> TlsFiles:
        """The TLS files of this service."""
        return TlsFiles(self.tls_cert_file, self.tls_key_file, self.tls_ca_file)

    @property
    def collector_tls(self) -> TlsFiles:
        """The TLS files for an https collector."""
        return TlsFiles(self.tls_cert_file, self.tls_key_file, self.otlp_ca_file or self.tls_ca_file)

    def check(self) -> None:
        """Read the TLS files, and what a subclass's settings point to."""
        super().check()
        self.tls.check()
        if self.otlp_endpoint.startswith("https://"):
            self.collector_tls.check()

    @field_validator("ops_listen")
    @classmethod
    def _check_ops_listen(cls, value: str) -> str:
        if value:
            check_listen(value)
        return value

    @model_validator(mode="after")
    def _check_collector(self) -> Self:
        if not self.otlp_endpoint:
            return self
        parts = urlsplit(self.otlp_endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("otlp_endpoint must look like http://127.0.0.1:4317 or https://collector:4317")
        if parts.scheme == "http" and not self.otlp_insecure and not _is_loopback(parts.hostname):
            raise ValueError(
                "otlp_endpoint sends spans unencrypted to another machine: use https://, or set otlp_insecure"
            )
        return self


class GrpcServiceSettings(ServiceSettings):
    """What every service is told that other services call."""

    max_connection_age_s: Annotated[float, Field(ge=0.1, le=86_400)] = DEFAULT_MAX_CONNECTION_AGE_S
    """Seconds, give or take a tenth, after which a connection takes no new calls; those that run go on. So
    long callers may take to notice a new replica."""
    drain_delay_s: Annotated[float, Field(ge=0, le=300)] = 0.0
    """Seconds on SIGTERM in which calls are taken as before, for names to forget this replica; then its
    callers are told to go elsewhere."""


S = TypeVar("S", bound=ProcessSettings)


def load_settings(cls: type[S], argv: Sequence[str]) -> S:
    """Return the settings from the environment.

    `--help` prints every setting and exits 0. `--check-config` exits 0 when the service could start with
    these settings and 1 when not. Any mistake, unknown variables included, is named on stderr: exit 2.
    """
    if argv and list(argv) not in (["--help"], ["-h"], ["--check-config"]):
        _fail(_USAGE, [f"unknown argument {argv[0]}: use --help or --check-config; settings are variables"])
    if argv and argv[0] != "--check-config":
        sys.stdout.write(describe_settings(cls))
        raise SystemExit(0)
    checking = bool(argv)
    problems = _unknown_variables(cls)
    try:
        settings = cls()
        if checking:
            settings.check()
    except ValidationError as error:
        problems += [_problem(cls, found["loc"], found["msg"]) for found in error.errors()]
    except PodiumError as error:
        problems.append(error.message)
    if problems:
        _fail(1 if checking else _USAGE, problems)
    if checking:
        sys.stdout.write("the configuration is valid\n")
        raise SystemExit(0)
    return settings


def describe_settings(cls: type[ProcessSettings]) -> str:
    """Return what `--help` prints: for each setting its variable, its default and its meaning."""
    lines = [(cls.__doc__ or "").strip(), "", "Settings, as environment variables:", ""]
    for name, field in cls.model_fields.items():
        default: object = field.get_default(call_default_factory=True, validated_data={})
        state = "required" if field.is_required() else f"default: {_shown(default)}"
        lines += [f"  {_variable(cls, name)}  ({state})", f"      {field.description or ''}"]
    return "\n".join(lines) + "\n"


def parse_listen(text: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[IPv6]:port`; raise PodiumError. Port 0 means any free one."""
    host, separator, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        separator = ""
    if not (separator and host and port.isascii() and port.isdigit() and int(port) <= _MAX_PORT):
        raise invalid(
            "a listen address must be host:port, such as 127.0.0.1:7052 or [::1]:7052",
            reason="LISTEN_INVALID",
        )
    return host, int(port)


def check_listen(text: str) -> str:
    """Return `text` if it is a listen address; raise ValueError, as pydantic validators must."""
    try:
        parse_listen(text)
    except PodiumError as error:
        raise ValueError(error.message) from None
    return text


def check_target(text: str) -> str:
    """Return `text` if a channel can be opened to it: `host:port`, or several with IP addresses as hosts.

    Raises ValueError, as pydantic validators must.
    """
    places = text.split(",")
    for place in places:
        check_listen(place)
    if len(places) > 1 and {_ip_version(place) for place in places} not in ({4}, {6}):
        raise ValueError(
            "several addresses must all be IPv4 or all be IPv6 ones; for names, give one that stands for all"
        )
    return text


def target_of(address: str) -> str:
    """Return gRPC's name for what `check_target` let pass."""
    first, *others = address.split(",")
    return f"ipv{_ip_version(first)}:{address}" if others else address


def is_one_place(address: str) -> bool:
    """Whether an address is a single IP address: a name may stand for several replicas, as a list does."""
    return _ip_version(address) > 0


def _ip_version(place: str) -> int:
    """Return 4 or 6; 0 for a name."""
    try:
        return ip_address(parse_listen(place)[0]).version
    except (ValueError, PodiumError):
        return 0


def _unknown_variables(cls: type[ProcessSettings]) -> list[str]:
    prefix = _variable(cls, "")
    known = {_variable(cls, name) for name in cls.model_fields}
    present = (name for name in os.environ if name.upper().startswith(prefix))  # noqa: TID251 - settings
    return [
        f"{name}: there is no such setting; --help lists all" for name in present if name.upper() not in known
    ]


def _variable(cls: type[ProcessSettings], name: str) -> str:
    return f"{cls.model_config['env_prefix']}{name}".upper()


def _problem(cls: type[ProcessSettings], place: tuple[int | str, ...], message: str) -> str:
    text = message.removeprefix("Value error, ")
    return f"{_variable(cls, str(place[0]))}: {text}" if place else text


def _shown(default: object) -> str:
    return "empty" if default in ("", None) else str(default)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _fail(status: int, problems: list[str]) -> NoReturn:
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    raise SystemExit(status)
