"""A data folder: one subfolder for each source that is there."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from podium_train.outcomes import mmlu_pro, reasoning_gym, zeroeval
from podium_train.outcomes.items import RecordedItem, RecordedSet, Source
from podium_train.outcomes.rows import malformed, missing

_READERS: Mapping[Source, tuple[str, Callable[[Path], tuple[RecordedItem, ...]]]] = {
    Source.REASONING_GYM: (reasoning_gym.FOLDER, reasoning_gym.read),
    Source.MMLU_PRO: (mmlu_pro.FOLDER, mmlu_pro.read),
    Source.ZEROEVAL: (zeroeval.FOLDER, zeroeval.read),
    Source.LLMROUTERBENCH: (
        "llmrouterbench_outcomes",
        partial(zeroeval.read, source=Source.LLMROUTERBENCH),
    ),
}


def read_folder(path: Path, sources: Iterable[Source] | None = None) -> RecordedSet:
    """Return the recorded answers under `path`.

    `sources` None reads every source whose subfolder is there; a source that is named must be there. Raises
    PodiumError (DATA_MISSING, DATA_MALFORMED) that names file and line: nothing is half-read.
    """
    wanted = tuple(_READERS) if sources is None else tuple(dict.fromkeys(sources))
    items: list[RecordedItem] = []
    found = False
    for source in wanted:
        name, reader = _READERS[source]
        folder = path / name
        if not folder.is_dir():
            if sources is not None:
                raise missing(f"the data folder has no {name}/")
            continue
        found = True
        read = reader(folder)
        _check_ids(name, read)
        items += read
    if not found:
        names = ", ".join(name for name, _ in _READERS.values())
        raise missing(f"the data folder holds none of {names}; `podium-train import` makes one")
    return RecordedSet(tuple(items))


def _check_ids(name: str, items: Iterable[RecordedItem]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.item_id in seen:
            raise malformed(name, f"the item {item.item_id!r} comes twice")
        seen.add(item.item_id)
