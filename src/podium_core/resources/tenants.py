"""Tenants and policies as objects of a cluster say them."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

from podium_core.config.tenant_sections import PolicySection, TenantSection
from podium_core.config.tenants import Tenants, reach_of, tenant_of
from podium_core.config.watched import Look, OnLook
from podium_core.domain.clock import Clock
from podium_core.domain.errors import invalid
from podium_core.domain.policy import Reach, WorkerFilter
from podium_core.resources import specs
from podium_core.resources.follower import Follower
from podium_core.resources.objects import POLICY, TENANT, Cluster, Kind, Resource
from podium_core.resources.status import AlwaysMine, Report, StatusWriter, accepted
from podium_core.resources.taken import Taken

_NO_WORKER = WorkerFilter(only=frozenset())


class ClusterTenants:
    """A source of tenants. `with_policies`: each has the lists of the Policy objects that hold for it.

    A Policy that cannot be read, and of which no good version is known, keeps every worker from everybody:
    nobody knows what it forbids. `on_look` hears of each new version: it is refused if any object is.
    """

    def __init__(
        self,
        cluster: Cluster,
        on_look: OnLook,
        *,
        with_policies: bool = False,
        follower: Callable[[Cluster, Kind, OnLook], Follower] = Follower,
    ) -> None:
        self._tenant_objects = follower(cluster, TENANT, on_look)
        self._policy_objects = follower(cluster, POLICY, on_look) if with_policies else None
        self._on_look = on_look
        self._tenants: Taken[TenantSection] = Taken(specs.tenant_of, _refuse_known_keys)
        self._policies: Taken[PolicySection] = Taken(specs.policy_of)
        self._current = Tenants(())
        self._status: StatusWriter | None = None

    def tell_status(self, cluster: Cluster, clock: Clock, *, interval_s: float) -> None:
        """Let `watch` also tell every object whether it is in force. Replicas find alike: all may write."""
        self._status = StatusWriter(cluster, self._reports, clock, AlwaysMine(), interval_s=interval_s)

    async def open(self) -> None:
        """Read the objects. Raises PodiumError: the cluster cannot be asked, or will not say."""
        await self._tenant_objects.open()
        if self._policy_objects is not None:
            await self._policy_objects.open()
        self._current = self._made()

    @property
    def current(self) -> Tenants:
        """The newest good tenants; without any Tenant, none."""
        return self._current

    def fresh(self) -> Tenants:
        """Return the newest good tenants: changes come by themselves."""
        return self._current

    @property
    def objects(self) -> Sequence[Resource]:
        """The objects, with their status."""
        policies = () if self._policy_objects is None else self._policy_objects.resources.values()
        return (*self._tenant_objects.resources.values(), *policies)

    async def watch(self) -> None:
        """Keep up with the cluster until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tenant_objects.follow(lambda: self._changed(TENANT)))
            if self._policy_objects is not None:
                group.create_task(self._policy_objects.follow(lambda: self._changed(POLICY)))
            if self._status is not None:
                group.create_task(self._status.keep())

    def _reports(self) -> Iterator[tuple[Resource, Report]]:
        for each in self.objects:
            yield each, Report((accepted(self._refused(each.kind).get(each.name)),))

    def _refused(self, kind: Kind) -> Mapping[str, str]:
        return (self._tenants if kind is TENANT else self._policies).refused

    def _changed(self, kind: Kind) -> None:
        self._current = self._made()
        self._on_look(kind.plural, Look.REFUSED if self._refused(kind) else Look.TAKEN)

    def _made(self) -> Tenants:
        policies = self._policies.take(
            () if self._policy_objects is None else self._policy_objects.resources.values()
        )
        sections = self._tenants.take(self._tenant_objects.resources.values())
        unread = tuple(Reach(_owner(name), workers=_NO_WORKER) for name in sorted(self._policies.absent))
        return Tenants(
            tuple(
                tenant_of(section, (*unread, *_reaches(policies, section.id)))
                for section in sections.values()
            )
        )


def _reaches(policies: Mapping[str, PolicySection], tenant_id: str) -> tuple[Reach, ...]:
    return tuple(
        reach_of(_owner(name), policy)
        for name, policy in policies.items()
        if policy.tenants is None or tenant_id in policy.tenants
    )


def _owner(name: str) -> str:
    return f"policy.{name}"


def _refuse_known_keys(tenant: TenantSection, others: Sequence[TenantSection]) -> None:
    owners = {key.id: other.id for other in others for key in other.keys}
    for key in tenant.keys:
        if key.id in owners:
            raise invalid(
                f"Tenant {tenant.id}: key {key.id!r} is one of Tenant {owners[key.id]}, which is older;"
                " ids of keys are unique",
                reason="CONFIG_INVALID",
            )
