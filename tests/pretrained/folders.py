"""Folders of tiny models, and what the reference implementation computes with them (golden.json)."""

import json
import pathlib
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import safetensors.numpy
import tokenizers
import tokenizers.models
import tokenizers.pre_tokenizers
import tokenizers.processors

GOLDEN = json.loads(pathlib.Path(__file__).with_name("golden.json").read_text())["models"]
WORDPIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmn", "##a"]
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmno"]


def tensors(name: str) -> dict[str, np.ndarray]:
    """The weights of a golden model, by the reference's names."""
    return {
        tensor: np.random.default_rng(zlib.crc32(tensor.encode())).normal(0, 0.5, shape).astype(np.float32)
        for tensor, shape in GOLDEN[name]["tensors"].items()
    }


def words() -> tokenizers.Tokenizer:
    """A tokenizer with the special pieces of RoBERTa."""
    vocab = {word: number for number, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.add_special_tokens(WORDS[:5])
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def write_folder(
    folder: pathlib.Path,
    name: str = "bert",
    rename: Callable[[str], str] = lambda tensor: tensor,
    dtype: Any = np.float32,
    extra: dict[str, np.ndarray] | None = None,
    **config: Any,
) -> pathlib.Path:
    """A golden model as a folder; `config` overrides what its config.json says."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(GOLDEN[name]["config"] | config))
    weights = {rename(tensor): value.astype(dtype) for tensor, value in tensors(name).items()}
    safetensors.numpy.save_file(weights | (extra or {}), folder / "model.safetensors")
    if name == "roberta":
        words().save(str(folder / "tokenizer.json"))
    else:
        (folder / "vocab.txt").write_text("\n".join(WORDPIECES) + "\n")
    return folder
