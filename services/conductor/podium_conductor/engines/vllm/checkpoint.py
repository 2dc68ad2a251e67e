"""A checkpoint folder: is it whole, can this engine serve it, and what exactly is it, as digests.

Read before vLLM sees it, so that a mistake is a sentence and not a stack trace minutes later.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from podium_core.domain.errors import PodiumError, invalid
from podium_core.domain.plan_prompt import TEMPLATE_DIGEST

ARCHITECTURES = frozenset(
    {
        "LlamaForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen2MoeForCausalLM",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
    }
)
"""What is tested or of the same family; vLLM knows many more, whose templates and ids nobody has checked."""

_TOKENIZER_FILES = (
    "added_tokens.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)
_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class _Reasons:
    missing: str
    corrupt: str


_CHECKPOINT = _Reasons("CHECKPOINT_MISSING", "CHECKPOINT_CORRUPT")
_ADAPTER = _Reasons("ADAPTER_MISSING", "ADAPTER_CORRUPT")


@dataclass(frozen=True, slots=True)
class CheckpointDigests:
    """SHA-256 (hex) of what a plan depends on besides the request."""

    model: str
    tokenizer: str
    template: str


def check_checkpoint(folder: Path, adapter: Path | None = None) -> None:
    """Check that `folder` holds a whole checkpoint of a known family with a chat template.

    `adapter` is the folder of a LoRA adapter. Raises PodiumError INVALID_REQUEST: CHECKPOINT_MISSING,
    CHECKPOINT_CORRUPT, CHECKPOINT_ARCHITECTURE, CHECKPOINT_NO_CHAT_TEMPLATE, ADAPTER_MISSING,
    ADAPTER_CORRUPT. No message names a path.
    """
    if not folder.is_dir():
        raise invalid(
            "the model path is no folder of this machine; names of a model hub are never looked up",
            reason="CHECKPOINT_MISSING",
        )
    config = _read_json(folder / "config.json", _CHECKPOINT)
    named = config.get("architectures")
    names = named if isinstance(named, list) else []
    if not any(name in ARCHITECTURES for name in names):
        known = ", ".join(sorted(ARCHITECTURES))
        raise invalid(f"the checkpoint's architecture is not among {known}", reason="CHECKPOINT_ARCHITECTURE")
    for path in _weights(folder):
        _check_safetensors(path, _CHECKPOINT)
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise invalid("the checkpoint has no tokenizer", reason="CHECKPOINT_MISSING")
    if not _chat_template(folder):
        raise invalid(
            "the checkpoint's tokenizer has no chat template; take an instruction-tuned checkpoint",
            reason="CHECKPOINT_NO_CHAT_TEMPLATE",
        )
    if adapter is not None:
        _check_adapter(adapter)


def context_limit(folder: Path) -> int | None:
    """Return the most tokens that the checkpoint was made for; None when its config does not say."""
    limit = _read_json(folder / "config.json", _CHECKPOINT).get("max_position_embeddings")
    return limit if isinstance(limit, int) and limit > 0 else None


def digests_of(folder: Path, adapter: Path | None = None) -> CheckpointDigests:
    """Return the digests; reads every byte of the weights, so call it off the event loop."""
    weights = [folder / "config.json", folder / "generation_config.json", *_weights(folder)]
    if adapter is not None:
        weights += [adapter / "adapter_config.json", adapter / "adapter_model.safetensors"]
    template = sha256(f"{_chat_template(folder)}\0{TEMPLATE_DIGEST}".encode()).hexdigest()
    return CheckpointDigests(_digest(weights), _digest(folder / name for name in _TOKENIZER_FILES), template)


def _digest(paths: Iterable[Path]) -> str:
    """Return one digest over names and contents of the files that exist."""
    whole = sha256()
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                whole.update(f"{path.name}\0{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def _weights(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        listed = _read_json(index, _CHECKPOINT).get("weight_map")
        if not isinstance(listed, dict) or not listed:
            raise _corrupt(index, _CHECKPOINT)
        return [folder / name for name in sorted({str(name) for name in listed.values()})]
    return [folder / "model.safetensors"]


def _check_safetensors(path: Path, reasons: _Reasons) -> None:
    """Check that the file is as long as its own header says."""
    if not path.is_file():
        raise invalid(f"the file {path.name} is missing", reason=reasons.missing)
    size = path.stat().st_size
    with path.open("rb") as file:
        header_length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if not 0 < header_length <= min(size - _LENGTH_BYTES, _MAX_HEADER_BYTES):
            raise _corrupt(path, reasons)
        try:
            header: Any = json.loads(file.read(header_length))
            ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
            whole = _LENGTH_BYTES + header_length + max(ends, default=0) == size
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise _corrupt(path, reasons) from None
    if not whole or not ends:
        raise _corrupt(path, reasons)


def _check_adapter(adapter: Path) -> None:
    if not adapter.is_dir():
        raise invalid("the adapter path is no folder of this machine", reason="ADAPTER_MISSING")
    config = _read_json(adapter / "adapter_config.json", _ADAPTER)
    if config.get("peft_type") != "LORA":
        raise invalid("the adapter is not a LoRA adapter", reason="ADAPTER_CORRUPT")
    _check_safetensors(adapter / "adapter_model.safetensors", _ADAPTER)


def adapter_rank(adapter: Path) -> int:
    """Return the rank that an adapter's config states; raise PodiumError ADAPTER_CORRUPT without one."""
    rank = _read_json(adapter / "adapter_config.json", _ADAPTER).get("r")
    if not isinstance(rank, int) or rank < 1:
        raise _corrupt(adapter / "adapter_config.json", _ADAPTER)
    return rank


def _chat_template(folder: Path) -> str:
    """Return the template's text, from its own file or from the tokenizer's config; empty without one."""
    own = folder / "chat_template.jinja"
    if own.is_file():
        return own.read_text(encoding="utf-8", errors="replace")
    config = folder / "tokenizer_config.json"
    if not config.is_file():
        return ""
    template = _read_json(config, _CHECKPOINT).get("chat_template")
    return template if isinstance(template, str) else json.dumps(template) if template else ""


def _read_json(path: Path, reasons: _Reasons) -> dict[str, Any]:
    if not path.is_file():
        raise invalid(f"the file {path.name} is missing", reason=reasons.missing)
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise _corrupt(path, reasons) from None
    if not isinstance(read, dict):
        raise _corrupt(path, reasons)
    return read


def _corrupt(path: Path, reasons: _Reasons) -> PodiumError:
    return invalid(f"the file {path.name} is damaged or cut short; copy it again", reason=reasons.corrupt)
