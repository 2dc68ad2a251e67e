"""What the vLLM engine can be told. Plain values: settings make them, nothing here imports vLLM."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from podium_core.domain.plan_prompt import NameMasking


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """How to load and run the model."""

    model_path: Path
    adapter_path: Path | None = None
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    context_tokens: int = 8_192
    max_sequences: int = 64
    tensor_parallel: int = 1
    executor: Literal["auto", "mp", "ray"] = "auto"
    gpu_memory_share: float = 0.9
    cpu_cache_gib: int = 4
    eager: bool = False
    prefix_caching: bool = True


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How to write plans."""

    completion_tokens: int = 1_024
    reasoning_tokens: int = 256
    temperature: float = 0.0
    constrained: bool = True
    max_tries: int = 3
    chances: bool = True
    masking: NameMasking = NameMasking.ORDINAL
