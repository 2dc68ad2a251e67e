"""What is stored of a request, to know it again: nothing to try guesses on once its run is erased.

A plain digest of a short question would stay personal data; under the run's key it goes with that key.
"""

import hmac
from hashlib import sha256

from podium_audit.ports import EventRow
from podium_audit.records.commands import Event
from podium_audit.records.run_state import RunState

_LABEL = b"podium-event/1\x00"
_NOTHING = bytes(32)


def of(run: RunState | None, event: Event) -> bytes:
    """Return the 32 bytes to store of an event's request; it holds content only where it is about a run."""
    if run is None:
        return event.digest
    if run.data_key is None:
        return _NOTHING
    return hmac.new(run.data_key, _LABEL + event.digest, sha256).digest()


def is_same(run: RunState | None, event: Event, known: EventRow) -> bool:
    """Whether this is the request that made the event: of an erased run there is nothing left to compare."""
    if run is not None and run.data_key is None:
        return True
    return known.digest in (of(run, event), event.digest)  # older logs have plain digests
