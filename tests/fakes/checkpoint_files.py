"""Checkpoint folders made of nothing but their outlines: enough for checks that never load a model."""

import json
import struct
from pathlib import Path


def safetensors(path: Path, data: bytes = b"\0" * 8) -> None:
    """Write a file with one tensor."""
    header = json.dumps(
        {"w": {"dtype": "F32", "shape": [len(data) // 4], "data_offsets": [0, len(data)]}}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def checkpoint(folder: Path) -> Path:
    """Write a whole checkpoint, as far as anybody can tell without loading it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text('{"architectures": ["Qwen2ForCausalLM"]}')
    (folder / "tokenizer.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    safetensors(folder / "model.safetensors")
    return folder


def adapter(folder: Path) -> Path:
    """Write a LoRA adapter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 8}')
    safetensors(folder / "adapter_model.safetensors")
    return folder
