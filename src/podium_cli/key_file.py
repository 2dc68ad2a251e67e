"""Edits the keys in `tenants.yaml` as text: comments stay, and no draft that means something else is kept."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import yaml

from podium_cli.failures import CliError
from podium_cli.yaml_edit import (
    Edit,
    appended,
    edited,
    is_filled,
    item_named,
    parse,
    rewrite,
    value_of,
    with_field,
    without_item,
)
from podium_core.config.tenant_sections import MAX_PREVIOUS
from podium_core.config.tenants import Key, PreviousSecret, Tenant, load_tenants
from podium_core.domain.errors import PodiumError

_NANOS = 1_000_000_000

Meant = tuple[Tenant, ...]


class KeyFile:
    """The keys of one `tenants.yaml`. Every method raises CliError with the file untouched."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()

    def tenants(self) -> Meant:
        """Return what the file says now."""
        try:
            return load_tenants(self._path).tenants
        except PodiumError as error:
            raise CliError(error.message, hint=f"mend {self._path} and try again") from None

    def tenant_of(self, key_id: str) -> Tenant:
        """Return the tenant that has the key."""
        for tenant in self.tenants():
            if any(key.key_id == key_id for key in tenant.keys):
                return tenant
        raise CliError(f"there is no key {key_id}", hint="`podium keys list` shows those there are")

    def add(self, tenant_id: str, key: Key) -> None:
        """Give a tenant one more key."""
        tenants = self.tenants()
        if any(key.key_id == other.key_id for tenant in tenants for other in tenant.keys):
            raise CliError(
                f"there is a key {key.key_id} already",
                hint=f"take another name, or give it a new secret: podium keys rotate {key.key_id}",
            )
        if tenant_id not in {tenant.tenant_id for tenant in tenants}:
            raise CliError(f"there is no tenant {tenant_id}", hint=f"add it to {self._path} first")
        meant = _with_keys(tenants, tenant_id, lambda keys: (*keys, key))
        self._rewrite(lambda text: _added(text, tenant_id, key), meant)

    def rotate(self, key_id: str, digest: str, *, until_ns: int, now_ns: int) -> None:
        """Give a key a new secret; its present one stays good until `until_ns`, unless that is past."""
        tenant = self.tenant_of(key_id)
        key = next(key for key in tenant.keys if key.key_id == key_id)
        overlapping = [old for old in key.previous if old.until_ns > now_ns]
        if until_ns > now_ns:
            overlapping.append(PreviousSecret(key.sha256, until_ns))
        if len(overlapping) > MAX_PREVIOUS:
            raise CliError(
                f"{key_id} has {MAX_PREVIOUS} earlier secrets that still work",
                hint="wait until one has ended, or end them all with --overlap 0 --end-earlier",
            )
        new = replace(key, sha256=digest, previous=tuple(overlapping))
        self._replace(tenant.tenant_id, key, new)

    def end_earlier(self, key_id: str) -> None:
        """Let only the key's newest secret in."""
        tenant = self.tenant_of(key_id)
        key = next(key for key in tenant.keys if key.key_id == key_id)
        self._replace(tenant.tenant_id, key, replace(key, previous=()))

    def remove(self, key_id: str) -> None:
        """Take a key out, with all its secrets."""
        tenant = self.tenant_of(key_id)
        meant = _with_keys(
            self.tenants(),
            tenant.tenant_id,
            lambda keys: tuple(key for key in keys if key.key_id != key_id),
        )
        self._rewrite(lambda text: _removed(text, tenant.tenant_id, key_id), meant)

    def _replace(self, tenant_id: str, old: Key, new: Key) -> None:
        meant = _with_keys(
            self.tenants(), tenant_id, lambda keys: tuple(new if key == old else key for key in keys)
        )
        self._rewrite(lambda text: _replaced(text, tenant_id, old, new), meant)

    def _rewrite(self, change: Callable[[str], str], meant: Meant) -> None:
        def check(draft: Path) -> None:
            if load_tenants(draft).tenants != meant:
                raise CliError(
                    "the tenants file is written in a way that cannot be edited safely; it is unchanged",
                    hint="write each tenant's keys as a list, as docs/config.md shows it",
                )

        with _alone(self._path):
            rewrite(self._path, change, check)


def moment_text(moment_ns: int) -> str:
    """Return a moment since the Unix epoch as `tenants.yaml` writes it; a day's first moment as its date."""
    moment = datetime.fromtimestamp(moment_ns // _NANOS, UTC)
    return f"{moment:%Y-%m-%d}" if moment_ns % (86_400 * _NANOS) == 0 else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _with_keys(tenants: Meant, tenant_id: str, change: Callable[[tuple[Key, ...]], tuple[Key, ...]]) -> Meant:
    return tuple(
        replace(tenant, keys=change(tenant.keys)) if tenant.tenant_id == tenant_id else tenant
        for tenant in tenants
    )


def _added(text: str, tenant_id: str, key: Key) -> str:
    tenant = _tenant(text, tenant_id)
    keys = value_of(tenant, "keys")
    fields = {"id": key.key_id, "sha256": f'"{key.sha256}"', "roles": f"[{', '.join(sorted(key.roles))}]"}
    if key.expires_ns is not None:
        fields["expires"] = f'"{moment_text(key.expires_ns)}"'
    entry = "{" + ", ".join(f"{name}: {value}" for name, value in fields.items()) + "}"
    if isinstance(keys, yaml.SequenceNode) and is_filled(keys):
        return edited(text, [appended(text, keys, [entry])])
    return edited(text, [with_field(text, tenant, "keys", [entry])])


def _replaced(text: str, tenant_id: str, old: Key, new: Key) -> str:
    node = item_named(value_of(_tenant(text, tenant_id), "keys"), old.key_id)
    edits: list[Edit] = []
    if new.sha256 != old.sha256:
        edits.append(with_field(text, node, "sha256", f'"{new.sha256}"'))
    if new.previous != old.previous:
        entries = [
            f'{{sha256: "{each.sha256}", until: "{moment_text(each.until_ns)}"}}' for each in new.previous
        ]
        edits.append(with_field(text, node, "previous", entries or "[]"))
    return edited(text, edits)


def _removed(text: str, tenant_id: str, key_id: str) -> str:
    keys = value_of(_tenant(text, tenant_id), "keys")
    item = item_named(keys, key_id)
    assert isinstance(keys, yaml.SequenceNode)
    assert item is not None
    return edited(text, [without_item(text, keys, item)])


def _tenant(text: str, tenant_id: str) -> yaml.Node | None:
    return item_named(value_of(parse(text), "tenants"), tenant_id)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other `podium keys` away from the file while it changes."""
    try:
        with path.with_name(f".{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
    except BlockingIOError:
        raise CliError(f"another `podium keys` is editing {path}; try again") from None
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}") from None
