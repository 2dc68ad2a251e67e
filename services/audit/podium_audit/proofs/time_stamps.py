"""RFC 3161: a time-stamping authority signs that a checkpoint existed at a time."""

from dataclasses import dataclass
from pathlib import Path

import aiohttp
from cryptography import x509
from rfc3161_client import (
    HashAlgorithm,
    TimestampRequestBuilder,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)

from podium_audit.anchors import TIME_STAMP
from podium_audit.ports import CheckpointRow
from podium_audit.proofs.anchoring import AnchorError
from podium_core.domain.errors import Code, PodiumError

_DEADLINE_S = 20.0
_MAX_ANSWER_BYTES = 256 * 1024
_OK = 200


@dataclass(frozen=True, slots=True)
class TimeStampAnchor:
    """One authority, whose answers are checked against the roots that the operator trusts for it."""

    url: str
    roots: tuple[x509.Certificate, ...]
    interval_s: float
    kind: str = TIME_STAMP

    @property
    def name(self) -> str:
        """The authority's address."""
        return self.url

    async def anchor(self, checkpoint: CheckpointRow) -> bytes:
        """Return the authority's checked response (DER) over the checkpoint's note. Raises AnchorError."""
        note = checkpoint.note.encode()
        request = TimestampRequestBuilder(note, HashAlgorithm.SHA256).build()
        answer = await self._ask(request.as_bytes())
        try:
            response = decode_timestamp_response(answer)
            builder = VerifierBuilder(nonce=request.nonce, roots=list(self.roots))
            builder.build().verify_message(response, note)
        except (VerificationError, ValueError) as error:
            raise AnchorError(f"its time stamp is not valid: {error}", is_alarm=True) from None
        return answer

    async def _ask(self, request: bytes) -> bytes:
        timeout = aiohttp.ClientTimeout(total=_DEADLINE_S)
        headers = {"Content-Type": "application/timestamp-query"}
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self.url, data=request, headers=headers, allow_redirects=False) as answer,
            ):
                if answer.status != _OK:
                    raise AnchorError(f"answered {answer.status}")
                return await answer.content.read(_MAX_ANSWER_BYTES)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise AnchorError(f"cannot be reached: {type(error).__name__}") from None


def load_roots(file: Path) -> tuple[x509.Certificate, ...]:
    """Return the certificates in a PEM file. Raises PodiumError."""
    try:
        return tuple(x509.load_pem_x509_certificates(file.read_bytes()))
    except (OSError, ValueError):
        raise PodiumError(
            Code.INVALID_REQUEST, f"{file} must hold the authority's root certificates as PEM"
        ) from None
