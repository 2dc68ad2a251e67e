"""Plain content of stored parts, for bodies that name them: a small cache, then the store."""

from collections import OrderedDict

from podium_audit.ports import ContentRow, LogReader, StoreError
from podium_audit.records import contents
from podium_audit.records.run_state import RunState
from podium_core.domain.errors import Code, PodiumError

_CACHE_BYTES = 2 << 20
_LARGEST_CACHED = 1 << 19
_HELD_BYTES = 64 << 20


class PartReader:
    """Reads parts by name. Parts of the running batch are found although they are not stored yet."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._waiting: dict[int, bytes] = {}
        self._held: dict[str, dict[int, bytes]] = {}
        self._held_bytes = 0

    def stage(self, row: ContentRow, data: bytes, *, keep: bool) -> None:
        """Remember a part that the running batch will store; `keep` it when it is likely to be asked for."""
        if not keep or len(data) > _LARGEST_CACHED:
            self._waiting[row.content_no] = data
            return
        self._cache[row.content_no] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > _CACHE_BYTES:
            self._cached_bytes -= len(self._cache.popitem(last=False)[1])

    def hold(self, run: RunState, row: ContentRow, data: bytes) -> None:
        """Remember a part that is never stored, until its run ends; too much is forgotten at once."""
        if run.outcome is None and self._held_bytes + len(data) <= _HELD_BYTES:
            self._held.setdefault(run.row.run_id, {})[row.content_no] = data
            self._held_bytes += len(data)

    def let_go(self, run_id: str) -> None:
        """Forget what is held of a run that has ended."""
        self._held_bytes -= sum(map(len, self._held.pop(run_id, {}).values()))

    def forget(self, run: RunState) -> None:
        """Forget every part of a run whose content is to go."""
        for part in run.parts.values():
            self._cached_bytes -= len(self._cache.pop(part.content_no, b""))
            self._waiting.pop(part.content_no, None)
        self.let_go(run.row.run_id)

    def committed(self) -> None:
        """Let go of what only the running batch needed."""
        self._waiting.clear()

    def rolled_back(self) -> None:
        """Forget everything: what was staged does not exist."""
        self._waiting.clear()
        self._held.clear()
        self._held_bytes = 0
        self._cache.clear()
        self._cached_bytes = 0

    def read(self, run: RunState, part_id: str) -> bytes:
        """Return a part's plain bytes. Raises StoreError, or PodiumError when the content is erased."""
        content_no = run.parts[part_id].content_no
        if run.erasure_index is not None:
            raise erased(run)
        data = self._cache.get(content_no, self._waiting.get(content_no))
        if data is None:
            data = self._held.get(run.row.run_id, {}).get(content_no)
        if data is not None:
            return data
        if not run.keeps_content:
            raise PodiumError(
                Code.CONFLICT,
                "the tenant's content is not stored, and what was in memory is gone: start the run anew",
                reason="CONTENT_NOT_KEPT",
            )
        if run.data_key is None:
            raise erased(run)
        sealed = self._reader.content(content_no)
        if sealed is None:
            raise StoreError("stored content is missing")
        return contents.unseal(run.data_key, run.row.run_id, part_id, sealed)


def erased(run: RunState) -> PodiumError:
    """Return the refusal to read, or add to, content that is gone."""
    under = run.erasure_index if run.erased_index is None else run.erased_index
    where = "" if under is None else f" under leaf {under}"
    return PodiumError(Code.CONFLICT, f"the run's content is erased{where}", reason="RUN_ERASED")
