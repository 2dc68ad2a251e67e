"""What was made of the objects of one kind: the last good version of each, what is wrong with newer ones."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from podium_core.domain.errors import PodiumError
from podium_core.resources.objects import Resource

V = TypeVar("V")

_log = logging.getLogger(__name__)


class Taken(Generic[V]):
    """Reads objects one by one, so that a bad one leaves the others alone.

    `read` makes a value of an object, `fit` checks it beside those of older objects; both raise PodiumError.
    """

    def __init__(
        self,
        read: Callable[[Resource], V],
        fit: Callable[[V, Sequence[V]], None] = lambda _value, _others: None,
    ) -> None:
        self._read = read
        self._fit = fit
        self._known: dict[str, tuple[int, V | PodiumError]] = {}
        self._good: dict[str, V] = {}
        self._refused: dict[str, str] = {}
        self._absent: frozenset[str] = frozenset()

    @property
    def refused(self) -> Mapping[str, str]:
        """What is wrong with the newest version of an object, by its name."""
        return self._refused

    @property
    def absent(self) -> frozenset[str]:
        """Names of refused objects of which no good version is known either."""
        return self._absent

    def take(self, resources: Iterable[Resource]) -> dict[str, V]:
        """Return the values in force by the objects' names, in the order of names.

        Of two objects that cannot both be, the older one holds.
        """
        listed = sorted(resources, key=lambda each: (each.created, each.name))
        values: dict[str, V] = {}
        refused: dict[str, str] = {}
        for each in listed:
            try:
                value = self._value_of(each)
                self._fit(value, tuple(values.values()))
            except PodiumError as error:
                refused[each.name] = error.message
                older = self._older(each, tuple(values.values()))
                if older is not None:
                    values[each.name] = older
            else:
                self._good[each.uid] = values[each.name] = value
        self._note({each.uid for each in listed}, refused)
        self._absent = frozenset(refused.keys() - values.keys())
        return {name: values[name] for name in sorted(values)}

    def _value_of(self, resource: Resource) -> V:
        generation, found = self._known.get(resource.uid, (None, None))
        if generation != resource.generation or found is None:
            try:
                found = self._read(resource)
            except PodiumError as error:
                found = error
            self._known[resource.uid] = (resource.generation, found)
        if isinstance(found, PodiumError):
            raise found
        return found

    def _older(self, resource: Resource, others: Sequence[V]) -> V | None:
        older = self._good.get(resource.uid)
        if older is None:
            return None
        try:
            self._fit(older, others)
        except PodiumError:
            return None
        return older

    def _note(self, uids: set[str], refused: dict[str, str]) -> None:
        for name, message in refused.items():
            if self._refused.get(name) != message:
                _log.error("an object of the cluster is refused: %s", message, extra={"object": name})
        self._refused = refused
        for memory in (self._known, self._good):
            for uid in memory.keys() - uids:
                del memory[uid]
