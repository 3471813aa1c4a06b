"""GPT and GPT-2 as encoders to fine-tune: of a workdir or a published folder, with the tokens that rows of texts need.

A row is START text CLASSIFY, or START text DELIMITER text CLASSIFY (Radford et al., 2018, section 3.3 and figure 1).
"""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import tokenizers
import tokenizers.processors

from nmt_jax.data.vocabulary.vocab import EOS, Vocab
from nmt_jax.errors import UserError
from nmt_jax.models.gpt import Model
from nmt_jax.pretrained.gpt import is_gpt, load_gpt
from nmt_jax.pretrained.huggingface import Pretrained
from nmt_jax.pretrained.loading import find_folder, read_run, trained_params
from nmt_jax.pretrained.piece_vocabulary import TEXT_END
from nmt_jax.pretrained.tokenizer import Tokenizer
from nmt_jax.pretrained.vocabulary_files import of_sentencepiece

START, DELIMITER, CLASSIFY = "<start>", "<delimiter>", "<classify>"


def load_causal(place: str | os.PathLike[str]) -> Pretrained:
    """Reads the GPT of a workdir of task "language_model", or a folder of GPT or GPT-2 in Hugging Face's format.

    The tokenizer makes rows that begin with what precedes a text in pretraining, if there is such a piece. The rows of
    new pieces in the table of embeddings are drawn, as widely as the others spread. Raises UserError if the place is
    neither, or as `load_gpt` does.
    """
    folder = find_folder(place, download=False, revision="main")
    if is_gpt(folder):
        found = load_gpt(folder)
        return _with_row_pieces(found, TEXT_END if found.tokenizer.id(TEXT_END) is not None else START)
    if not (folder / "checkpoints").is_dir():
        raise UserError(f"{folder}: neither a GPT or GPT-2 in Hugging Face's format nor a workdir")
    found = load_gpt_workdir(folder)
    return _with_row_pieces(found, found.tokenizer.pieces([EOS])[0])


def load_gpt_workdir(workdir: str | os.PathLike[str], checkpoint: str | int | None = None) -> Pretrained:
    """The GPT of a workdir of task "language_model", with its vocabulary as a tokenizer; arguments as `load_workdir`.

    Raises UserError if the workdir has another task or model, or no checkpoint.
    """
    folder, config = read_run(workdir, ("language_model",), "this needs a GPT of task 'language_model'")
    if config["model_name"] != "gpt":
        raise UserError(f"{folder}: its model is {config['model_name']!r}, but this needs model_name='gpt'")
    vocab = Vocab.load(folder / "vocab" / "text.model")
    plain = {"dtype": "float32", "remat": "none", "scan_layers": False}
    model = Model(vocab_size=len(vocab), **{**config["model"], **plain})
    tokenizer = Tokenizer(of_sentencepiece(vocab.model, str(folder)).to_str())
    return Pretrained("gpt", model, trained_params(folder, checkpoint), tokenizer, model.max_positions)


def _with_row_pieces(found: Pretrained, start: str) -> Pretrained:
    """The same model with the pieces and templates of rows."""
    tokenizer = tokenizers.Tokenizer.from_str(found.tokenizer.model)
    pieces = (start, DELIMITER, CLASSIFY)
    tokenizer.add_special_tokens([piece for piece in pieces if tokenizer.token_to_id(piece) is None])
    ids = {piece: tokenizer.get_vocab(with_added_tokens=True)[piece] for piece in pieces}
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{start} $A {CLASSIFY}", pair=f"{start} $A {DELIMITER} $B {CLASSIFY}", special_tokens=list(ids.items())
    )
    table = np.asarray(found.params["embedding"]["table"])
    drawn = np.random.default_rng(0).normal(0, table.std(), (len(pieces), table.shape[1])).astype(table.dtype)
    size = max(len(table), 1 + max(ids.values()))
    table = np.concatenate([table, drawn[: size - len(table)]])
    return dataclasses.replace(
        found,
        model=found.model.clone(vocab_size=size),
        params={**found.params, "embedding": {"table": table}},
        tokenizer=Tokenizer(tokenizer.to_str()),
    )
