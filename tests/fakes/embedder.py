"""The embedding port in memory."""

import asyncio
import struct
from dataclasses import dataclass, field

from podium_core.domain.errors import PodiumError
from podium_core.domain.usage import Usage
from podium_core.orchestration.ports import EmbedCall, Embedded, EmbedPort


@dataclass(slots=True)
class FakeEmbedder(EmbedPort):
    """Gives each input the vector (its position, its length)."""

    calls: list[EmbedCall] = field(default_factory=list)
    error: PodiumError | None = None
    gate: asyncio.Event | None = None

    async def embed(self, call: EmbedCall) -> Embedded:
        """Give them once the gate is open, or raise what is set."""
        self.calls.append(call)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        vectors = [struct.pack("<2f", i, len(str(item))) for i, item in enumerate(call.inputs)]
        return Embedded(tuple(vectors), Usage(input_tokens=7), 3, 1_000)
