"""What Worker, Tenant and Policy say, read by the same models as pool.yaml and tenants.yaml."""

import re
from collections.abc import Mapping
from typing import Any

from podium_core.config.pool import refuse_duplicate_skills
from podium_core.config.tenant_sections import PolicySection, TenantSection
from podium_core.config.worker_sections import WorkerSection
from podium_core.config.yaml_file import check_object
from podium_core.domain.errors import PodiumError, invalid
from podium_core.resources.objects import Resource

_KEY_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}")


def worker_of(resource: Resource) -> WorkerSection:
    """Return a Worker's spec; its id is the object's name, its keys are files of the mounted Secret.

    Raises PodiumError (INVALID_REQUEST) that names object, field and mistake.
    """
    spec = {**resource.spec, "id": resource.name}
    if "key" in spec:
        spec["key"] = _file_of(spec["key"], resource)
    if isinstance(aws := spec.get("aws"), Mapping):
        spec["aws"] = {field: _file_of(key, resource) for field, key in aws.items()}
    document = check_object(spec, WorkerSection, resource.title)
    refuse_duplicate_skills(document, document.content, ())
    return document.content


def tenant_of(resource: Resource) -> TenantSection:
    """Return a Tenant's spec; its id is the object's name. Raises PodiumError, as above."""
    document = check_object({**resource.spec, "id": resource.name}, TenantSection, resource.title)
    seen: set[str] = set()
    for number, key in enumerate(document.content.keys):
        if key.id in seen:
            raise document.error(("keys", number, "id"), f"there are two keys {key.id!r}")
        seen.add(key.id)
    return document.content


def policy_of(resource: Resource) -> PolicySection:
    """Return a Policy's spec. Raises PodiumError, as above."""
    return check_object(dict(resource.spec), PolicySection, resource.title).content


def _file_of(key: Any, resource: Resource) -> dict[str, str]:
    """Return where a named key is, as pool.yaml would say it. It may not lead out of the mounted Secret."""
    name = key.get("name") if isinstance(key, Mapping) and key.keys() == {"name"} else None
    if not isinstance(name, str) or not _KEY_NAME.fullmatch(name):
        raise _refused(resource, "key: give {name: ...}, a key of the Secret with the provider keys")
    return {"file": name}


def _refused(resource: Resource, message: str) -> PodiumError:
    return invalid(f"{resource.title}: {message}", reason="CONFIG_INVALID")
