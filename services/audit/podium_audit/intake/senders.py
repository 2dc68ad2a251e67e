"""Who sends spans: a Podium service, or a program of a tenant, told apart by the certificate alone."""

from collections.abc import Callable, Container
from dataclasses import dataclass

from podium_core.config.tenants import Tenants
from podium_core.domain.errors import Code, PodiumError
from podium_core.runtime.identity import SERVICES


@dataclass(frozen=True, slots=True)
class Sender:
    """`tenant_id` is empty for Podium's own services."""

    name: str
    tenant_id: str


class AnySender(Container[str]):
    """Lets every certified caller through to `sender_of`, which knows the tenants' senders of this moment."""

    def __contains__(self, caller: object) -> bool:
        return isinstance(caller, str)


def sender_of(name: str, tenants: Callable[[], Tenants]) -> Sender:
    """Return whose spans `name` sends; raise PodiumError (POLICY_DENIED) when it is nobody's."""
    if name in SERVICES:
        return Sender(name, "")
    owner = next((tenant for tenant in tenants().tenants if name in tenant.otlp_senders), None)
    if owner is None:
        raise PodiumError(
            Code.POLICY_DENIED,
            f"no tenant has a sender {name}: add it to its otlp_senders in tenants.yaml",
            reason="SENDER_UNKNOWN",
        )
    return Sender(name, owner.tenant_id)
