"""Tokenizers from the vocabulary files of published models: WordPiece, SentencePiece, and byte-pair merges."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import tokenizers
import tokenizers.decoders
import tokenizers.models
import tokenizers.normalizers
import tokenizers.pre_tokenizers
import tokenizers.processors

from nmt_jax.errors import UserError

SENTENCEPIECE = ("spiece.model", "sentencepiece.model", "sentencepiece.bpe.model", "spm.model")
BERT_SPECIAL = ("[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]")
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")  # the first pieces of models trained with fairseq
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # types of pieces in SentencePiece
UNIGRAM, BPE, WORD = 1, 2, 3  # types of its algorithm
SPACE = "\u2581"  # its symbol for a space, which begins the first piece of a word


class Layout(NamedTuple):
    """How a family uses a SentencePiece model.

    single, pair: templates of one text and of two. quotes: two ` or ' become ". strips: white space at the ends is
    removed before normalization. folds: lower case and no accents, unless the settings say otherwise. fairseq: the
    first pieces are those of FAIRSEQ, and <mask> is the last. extra: the family has pieces like <extra_id_0>. mask:
    [MASK] follows the pieces of the model.
    """

    single: str
    pair: str
    quotes: bool = False
    folds: bool = False
    fairseq: bool = False
    extra: bool = False
    mask: bool = False


_BERT = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
_ROBERTA = "<s> $A </s>", "<s> $A </s> </s> $B </s>"
_T5 = Layout("$A </s>", "$A </s> $B </s>", extra=True)
LAYOUTS = {
    "t5": _T5,
    "mt5": _T5,
    "bleurt": Layout(*_BERT),
    "rembert": Layout(*_BERT, quotes=True),
    "albert": Layout(*_BERT, quotes=True, folds=True),
    "deberta-v2": Layout(*_BERT, mask=True),
    "xlm-roberta": Layout(*_ROBERTA, fairseq=True),
}


def read_vocabulary(folder: pathlib.Path, kind: str, settings: Mapping[str, Any]) -> tokenizers.Tokenizer | None:
    """The tokenizer of a folder without tokenizer.json; None if it has no vocabulary file either.

    kind: `model_type`. settings: the content of tokenizer_config.json. Raises UserError if the file is not a vocabulary
    of this kind.
    """
    if (folder / "vocab.txt").is_file():
        return _wordpiece(folder / "vocab.txt", kind, settings)
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return _byte_pairs(folder / "vocab.json", folder / "merges.txt", kind, settings)
    if path := next((folder / name for name in SENTENCEPIECE if (folder / name).is_file()), None):
        if kind not in LAYOUTS:
            raise UserError(
                f"{path}: how a {kind} model uses it is not known; write tokenizer.json, where transformers is "
                "installed, with AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
            )
        return _sentencepiece(path, LAYOUTS[kind], settings)
    return None


def _wordpiece(path: pathlib.Path, kind: str, settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """BERT's tokenizer (Devlin et al., 2019, section 3; Wu et al., 2016) from a file with one piece per line.

    MPNet has BERT's words between the special pieces of RoBERTa.
    """
    pieces = path.read_text(encoding="utf-8").split("\n")
    vocab = {piece.rstrip("\r"): number for number, piece in enumerate(pieces) if piece or number < len(pieces) - 1}
    needed = (*FAIRSEQ[:3], "[UNK]") if kind == "mpnet" else BERT_SPECIAL[:4]
    missing = [piece for piece in needed if piece not in vocab]
    if missing:
        raise UserError(f"{path}: {', '.join(missing)} not among its {len(vocab)} pieces: not a vocabulary of {kind}")
    normalizer = tokenizers.normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    if kind != "mpnet":
        return bert_tokenizer(vocab, normalizer)
    tokenizer = _longest_match(vocab, normalizer)
    tokenizer.add_special_tokens([piece for piece in (*needed, "<mask>") if piece in vocab])
    tokenizer.post_processor = _templates(*_ROBERTA, vocab)
    return tokenizer


def bert_tokenizer(vocab: dict[str, int], normalizer: tokenizers.normalizers.Normalizer) -> tokenizers.Tokenizer:
    """A tokenizer with BERT's longest-match search for pieces in words, its special pieces and its templates."""
    return with_bert_pieces(_longest_match(vocab, normalizer), vocab)


def _longest_match(vocab: dict[str, int], normalizer: tokenizers.normalizers.Normalizer) -> tokenizers.Tokenizer:
    """A tokenizer that searches words for the longest pieces."""
    model = tokenizers.models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return tokenizer


def with_bert_pieces(tokenizer: tokenizers.Tokenizer, vocab: dict[str, int]) -> tokenizers.Tokenizer:
    """Adds BERT's special pieces, and its templates for one text and for two."""
    tokenizer.add_special_tokens([piece for piece in BERT_SPECIAL if piece in vocab])
    tokenizer.post_processor = _templates(*_BERT, vocab)
    return tokenizer


def _templates(single: str, pair: str, vocab: Mapping[str, int]) -> tokenizers.processors.TemplateProcessing:
    """What is put around one text and around two."""
    pieces = {part.partition(":")[0] for part in pair.split()} - {"$A", "$B"}
    special = [(piece, vocab[piece]) for piece in sorted(pieces)]
    return tokenizers.processors.TemplateProcessing(single=single, pair=pair, special_tokens=special)


def _byte_pairs(
    path: pathlib.Path, merges: pathlib.Path, kind: str, settings: Mapping[str, Any]
) -> tokenizers.Tokenizer:
    """The tokenizer of GPT-2, RoBERTa and BART: byte-pair merges over bytes (Radford et al., 2019, section 2.2)."""
    vocab = json.loads(path.read_text(encoding="utf-8"))
    lines = merges.read_text(encoding="utf-8").split("\n")
    parts = [line.partition(" ") for line in lines if line and not line.startswith("#version")]
    pairs = [(first, second) for first, _, second in parts]
    special = ["<|endoftext|>"] if kind == "gpt2" else [*FAIRSEQ, "<mask>"]
    if missing := [piece for piece in special[:4] if piece not in vocab]:
        raise UserError(f"{path}: {', '.join(missing)} not among its {len(vocab)} pieces: not a vocabulary of {kind}")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, pairs, fuse_unk=False))
    space = bool(settings.get("add_prefix_space", False))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=space)
    tokenizer.add_special_tokens(special[:4])
    if kind == "gpt2":
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        return tokenizer
    tokenizer.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(
        ("</s>", vocab["</s>"]), ("<s>", vocab["<s>"]), add_prefix_space=space
    )
    return tokenizer


def _sentencepiece(path: pathlib.Path, layout: Layout, settings: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """The tokenizer of a unigram model of SentencePiece (Kudo, 2018), with its normalization."""
    from sentencepiece import sentencepiece_model_pb2  # late: most folders have tokenizer.json

    content = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # made at import
    content.ParseFromString(path.read_bytes())
    if content.trainer_spec.model_type != UNIGRAM:
        raise UserError(f"{path}: not a unigram model of SentencePiece; write tokenizer.json with transformers")
    # Six digits, because the JSON of `tokenizers` does not preserve longer numbers exactly.
    pieces = [(piece.piece, round(piece.score, 6)) for piece in content.pieces]
    special = [piece.piece for piece in content.pieces if piece.type == CONTROL]
    unknown = content.trainer_spec.unk_id
    if layout.folds:  # a number and a comma are never one piece
        pieces = [(piece, score - 100 * (piece[-1:] == "," and piece[-2:-1].isdigit())) for piece, score in pieces]
    if layout.fairseq:
        pieces, unknown = [*((piece, 0.0) for piece in FAIRSEQ), *pieces[3:], ("<mask>", 0.0)], FAIRSEQ.index("<unk>")
        special = [*FAIRSEQ, "<mask>"]
    added = []
    if layout.extra:
        added = [f"<extra_id_{number}>" for number in reversed(range(int(settings.get("extra_ids", 100))))]
    elif layout.mask:
        added = ["[MASK]"]
    added = [piece for piece in added if piece not in {piece for piece, _ in pieces}]
    pieces += [(piece, 0.0) for piece in added]
    vocab = {piece: number for number, (piece, _) in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unknown))
    tokenizer.add_special_tokens(
        [piece for piece in dict.fromkeys([*special, *added, *BERT_SPECIAL]) if piece in vocab]
    )
    own = [piece.piece for piece in content.pieces if piece.type == USER_DEFINED and piece.piece not in BERT_SPECIAL]
    tokenizer.add_tokens([tokenizers.AddedToken(piece, normalized=False) for piece in own])
    tokenizer.normalizer = _normalizer(content.normalizer_spec, layout, settings)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(
        prepend_scheme="always" if content.normalizer_spec.add_dummy_prefix else "never"
    )
    try:
        tokenizer.post_processor = _templates(layout.single, layout.pair, vocab)
    except KeyError as error:
        raise UserError(f"{path}: {error.args[0]} not among its {len(vocab)} pieces: of another model") from error
    return tokenizer


def of_sentencepiece(model: bytes, where: str) -> tokenizers.Tokenizer:
    """The tokenizer of a vocabulary that was trained here (`Vocab`), with the same ids and without special pieces.

    model: the content of a .model file. Raises UserError, whose message begins with `where`, if it is of another kind.
    """
    from sentencepiece import sentencepiece_model_pb2  # late: most folders have tokenizer.json

    content = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # made at import
    content.ParseFromString(model)
    kind, spec = content.trainer_spec.model_type, content.trainer_spec
    ids = {piece.piece: number for number, piece in enumerate(content.pieces)}
    unknown, fallback = content.pieces[spec.unk_id].piece, spec.byte_fallback
    if kind == UNIGRAM:
        # No word has a mark of a space at its end, so a text that contains "<unk>" has no special piece.
        special = (UNKNOWN, CONTROL)
        scores = [(one.piece + SPACE * (one.type in special), round(one.score, 6)) for one in content.pieces]
        tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, spec.unk_id, fallback))
    elif kind == BPE:
        merges = [
            (piece[:cut], piece[cut:])
            for piece in ids
            for cut in range(1, len(piece))
            if piece[:cut] in ids and piece[cut:] in ids and content.pieces[ids[piece]].type == NORMAL
        ]
        bpe = tokenizers.models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=fallback)
        tokenizer = tokenizers.Tokenizer(bpe)
    elif kind == WORD:
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(ids, unknown))
    else:
        raise UserError(f"{where}: a vocabulary of characters; train one of subwords or words")
    own = [piece.piece for piece in content.pieces if piece.type == USER_DEFINED]
    tokenizer.add_tokens([tokenizers.AddedToken(piece, normalized=False) for piece in own])
    tokenizer.normalizer = _normalizer(content.normalizer_spec, Layout("", ""), {})
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="always")
    steps = [tokenizers.decoders.Replace(SPACE, " "), tokenizers.decoders.ByteFallback(), tokenizers.decoders.Fuse()]
    tokenizer.decoder = tokenizers.decoders.Sequence([*steps, tokenizers.decoders.Strip(" ", 1, 0)])
    return tokenizer


def _normalizer(spec: Any, layout: Layout, settings: Mapping[str, Any]) -> tokenizers.normalizers.Normalizer:
    """The family's own normalization, then that of the SentencePiece model."""
    steps: list[tokenizers.normalizers.Normalizer] = []
    if layout.quotes:
        steps += [tokenizers.normalizers.Replace(mark * 2, '"') for mark in "`'"]
    if layout.folds and not settings.get("keep_accents", False):
        steps += [tokenizers.normalizers.NFKD(), tokenizers.normalizers.StripAccents()]
    if settings.get("do_lower_case", layout.folds):
        steps.append(tokenizers.normalizers.Lowercase())
    if spec.precompiled_charsmap:
        steps.append(tokenizers.normalizers.Precompiled(spec.precompiled_charsmap))
    if spec.remove_extra_whitespaces:
        for pattern, content in ((r"^ +| +$", ""), (" {2,}", " ")):
            steps.append(tokenizers.normalizers.Replace(tokenizers.Regex(pattern), content))
    return tokenizers.normalizers.Sequence(steps)
