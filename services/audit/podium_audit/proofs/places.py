"""Which places anchor the log's checkpoints, as the settings name them."""

from podium_audit.proofs.anchoring import Anchor
from podium_audit.proofs.checkpoint_files import FileAnchor
from podium_audit.proofs.witnesses import WitnessAnchor, load_witnesses
from podium_audit.settings import AuditSettings
from podium_audit.stores.readers import Readers
from podium_core.domain.errors import Code, PodiumError


def places(settings: AuditSettings, readers: Readers) -> list[Anchor]:
    """Return the places. Raises PodiumError that says what to mend."""
    found: list[Anchor] = []
    if settings.witnesses_file is not None:
        found += [
            WitnessAnchor(witness, url, readers, settings.witness_interval_s)
            for witness, url in load_witnesses(settings.witnesses_file)
        ]
    if settings.anchor_dir is not None:
        if not settings.anchor_dir.is_dir():
            raise PodiumError(Code.INVALID_REQUEST, f"anchor_dir {settings.anchor_dir} is no directory")
        found.append(FileAnchor(settings.anchor_dir, settings.origin, settings.anchor_interval_s))
    if settings.time_stamp_url:
        found.append(_authority(settings))
    return found


def _authority(settings: AuditSettings) -> Anchor:
    if settings.time_stamp_roots_file is None:
        raise PodiumError(
            Code.INVALID_REQUEST,
            "time_stamp_url needs time_stamp_roots_file: the authority's root certificates",
        )
    try:
        from podium_audit.proofs.time_stamps import TimeStampAnchor, load_roots  # noqa: PLC0415 - an extra
    except ImportError:
        raise PodiumError(
            Code.INVALID_REQUEST, "time stamps need an extra: pip install 'podium[audit,timestamps]'"
        ) from None
    roots = load_roots(settings.time_stamp_roots_file)
    return TimeStampAnchor(settings.time_stamp_url, roots, settings.anchor_interval_s)
