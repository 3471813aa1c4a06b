"""Rules about several keys of a config."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from nmt_jax.schema.filters import problem_of_filters

SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # pieces of every vocabulary
BYTE = re.compile("<0x[0-9A-F]{2}>")  # pieces of SentencePiece
EMBEDDED = ("en", "de")  # the languages of the embedded corpora
SOURCE_KINDS = ("text", "features", "image", "audio")
SEQUENCES = ("features", "audio")  # kinds of source whose rows follow each other in time
SCENE_TEXTS = {  # of the families of embedded scenes: their texts
    "": EMBEDDED,
    "ambiguous": EMBEDDED,
    "questions": ("question", "answer"),
}
PACKED = {
    "translate": "transformer",
    "language_model": "gpt",
    "pretrain": "bert",
}  # the model of each task whose rows may hold several items


class Rule(NamedTuple):
    """A rule: `problem(config)` is a sentence about what is wrong, or "".

    keys: the dotted keys that it reads. A config that lacks one of them, because it belongs to another task or to an
    older version, fulfils the rule.
    """

    keys: tuple[str, ...]
    problem: Callable[[dict[str, Any]], str]


def _languages_differ(config: dict[str, Any]) -> str:
    source, target = config["data.source"], config["data.target"]
    return f"config.data.target={target!r}: must differ from data.source" if target in source.split(",") else ""


def _embedded_languages(config: dict[str, Any]) -> str:
    for name in ("data.source", "data.target"):
        if config["data.corpus"] == "grammar" and config[name] not in EMBEDDED:
            return (
                f"config.{name}={config[name]!r}: must be {' or '.join(EMBEDDED)} for the embedded corpus; "
                "set data.corpus=text to use your own files"
            )
    return ""


def _filters(config: dict[str, Any]) -> str:
    return problem_of_filters(config["data.filters"])


def _noam(config: dict[str, Any]) -> str:
    wrong = config["optimizer.warmup_steps"] < 1 or "model.d_model" not in config
    if config["optimizer.schedule"] == "noam" and wrong:
        return "config.optimizer.schedule='noam': needs model.d_model and optimizer.warmup_steps of at least 1"
    return ""


def _weight_decay(config: dict[str, Any]) -> str:
    if config["optimizer.weight_decay"] and config["optimizer.name"] != "adamw":
        return (
            f"config.optimizer.weight_decay={config['optimizer.weight_decay']}: has no effect on "
            f"{config['optimizer.name']!r}; set it to 0 or optimizer.name=adamw"
        )
    return ""


def _packing_model(config: dict[str, Any]) -> str:
    needed = PACKED[config["task"]]
    if config["data.packing"] and config["model_name"] != needed:
        return (
            f"config.data.packing=True: model_name={config['model_name']!r} cannot keep the items of a row apart; "
            f"use model_name={needed!r}, or set data.packing=false"
        )
    return ""


def _recurrent_only(config: dict[str, Any]) -> str:
    for name in ("data.carry_state", "loss.activation_penalty", "loss.temporal_penalty"):
        if config[name] and config["model_name"] != "rnn_lm":
            return f"config.{name}={config[name]}: needs the states of model_name='rnn_lm'"
    return ""


def _carried_cell(config: dict[str, Any]) -> str:
    if config["data.carry_state"] and config["model.cell"] == "lstmn":
        return "config.data.carry_state=True: the state of model.cell='lstmn' grows with every step; set it to false"
    return ""


def _auxiliary_language_model(config: dict[str, Any]) -> str:
    if not config["loss.language_model"]:
        return ""
    if config["model_name"] != "causal_head":
        return f"config.loss.language_model={config['loss.language_model']}: needs model_name='causal_head'"
    if config["encoder.frozen"]:
        return "config.loss.language_model: it would train the encoder, which encoder.frozen=true forbids; set it to 0"
    return ""


def _learned_positions(config: dict[str, Any]) -> str:
    length, positions = config["data.max_length"], config["model.max_positions"]
    if config["model.positions"] == "learned" and length > positions:
        return f"config.model.max_positions={positions}: sequences have up to data.max_length={length} positions"
    return ""


def _packing_next_sentence(config: dict[str, Any]) -> str:
    if config["data.packing"] and config["model.next_sentence"]:
        return (
            "config.model.next_sentence=True: the lengths of random next sentences are not known when packed rows are "
            "planned; set it to false, or data.packing=false"
        )
    return ""


def _hard_attention_risk(config: dict[str, Any]) -> str:
    if config["model.attention"] == "hard" and config["loss.risk.metric"]:
        return (
            f"config.loss.risk.metric={config['loss.risk.metric']!r}: minimum risk does not train hard attention; "
            "set model.attention=global"
        )
    return ""


def _packing_risk(config: dict[str, Any]) -> str:
    if config["data.packing"] and config["loss.risk.metric"]:
        return (
            f"config.loss.risk.metric={config['loss.risk.metric']!r}: minimum risk needs one sentence per row; "
            "set data.packing=false"
        )
    return ""


def _coverage_of_copies(config: dict[str, Any]) -> str:
    if config["loss.coverage"] and config["model_name"] == "transformer" and config["model.copying"] == "none":
        return (
            f"config.loss.coverage={config['loss.coverage']}: a Transformer attends to a word as often as its layers "
            "and heads need; set model.copying=pointer, whose attention is meant, or loss.coverage=0"
        )
    return ""


def _coverage_of_attention(config: dict[str, Any]) -> str:
    if config["loss.coverage"] and config["model.attention"] == "none":
        return (
            f"config.loss.coverage={config['loss.coverage']}: needs attention; set it to 0, or model.attention=global"
        )
    return ""


def _curriculum_of_lines(config: dict[str, Any]) -> str:
    difficulty = config["data.curriculum.difficulty"]
    if config["task"] == "language_model" and difficulty != "none" and not config["data.packing"]:
        return (
            f"config.data.curriculum.difficulty={difficulty!r}: running text is not made of examples; set "
            "data.packing=true, which reads every line on its own (model gpt), or data.curriculum.difficulty=none"
        )
    return ""


def _synthetic(config: dict[str, Any]) -> str:
    for name, unused in (("data.upsample", 1), ("data.synthetic_ratio", 0)):
        if not config["data.synthetic"] and config[name] != unused:
            return f"config.{name}={config[name]}: has no effect without synthetic pairs; set data.synthetic=PREFIX"
    return ""


def _symbols(config: dict[str, Any]) -> str:
    symbols = config["vocab.symbols"]
    for symbol in symbols:
        if symbol.split() != [symbol] or "▁" in symbol or symbol in SPECIAL or symbols.count(symbol) > 1:
            return f"config.vocab.symbols={symbols!r}: {symbol!r} must be one word, named once, and none of {SPECIAL}"
        if BYTE.fullmatch(symbol):
            return f"config.vocab.symbols={symbols!r}: {symbol!r} is the name of a byte; use another word"
    return ""


def _corpus_of_rows(config: dict[str, Any]) -> str:
    kind, corpus = config["data.kind"], config["data.corpus"]
    if corpus == "scenes":
        other = "features" in kind or "audio" in kind
        return f"config.data.kind={kind!r}: the corpus 'scenes' has text and images" if other else ""
    if corpus == "speech":
        return "" if kind == "audio" else f"config.data.kind={kind!r}: the corpus 'speech' needs data.kind=audio"
    if corpus == "vqa":
        return "" if kind == "text,image" else f"config.data.kind={kind!r}: the corpus 'vqa' needs data.kind=text,image"
    if kind != "text" and corpus != "text":
        return f"config.data.kind={kind!r}: the corpus {corpus!r} has text only; set data.corpus=text"
    return ""


def _kinds(config: dict[str, Any]) -> list[str]:
    """The kind of each source."""
    kinds = config["data.kind"].split(",")
    return kinds * len(config["data.source"].split(",")) if len(kinds) == 1 else kinds


def _kind_of_each_source(config: dict[str, Any]) -> str:
    kinds, shown = _kinds(config), f"config.data.kind={config['data.kind']!r}"
    if wrong := [kind for kind in kinds if kind not in SOURCE_KINDS]:
        return f"{shown}: use {', '.join(SOURCE_KINDS)}, not {wrong[0]!r}"
    count = len(config["data.source"].split(","))
    if len(kinds) != count:
        return f"{shown}: {len(kinds)} kinds, but data.source={config['data.source']!r} names {count} sources"
    return ""


def _scenes(config: dict[str, Any]) -> str:
    if config["data.corpus"] != "scenes":
        return ""
    family = config["data.name"]
    if family not in SCENE_TEXTS:
        return f"config.data.name={family!r}: the families of scenes are {', '.join(map(repr, SCENE_TEXTS))}"
    texts = [
        name for name, kind in zip(config["data.source"].split(","), _kinds(config), strict=False) if kind == "text"
    ]
    for key, names in (("source", texts), ("target", [config["data.target"]])):
        if wrong := [name for name in names if name not in SCENE_TEXTS[family]]:
            return f"config.data.{key}={wrong[0]!r}: the texts of these scenes are {' and '.join(SCENE_TEXTS[family])}"
    return ""


def _speech(config: dict[str, Any]) -> str:
    if config["data.corpus"] == "speech" and config["data.target"] != "en":
        return f"config.data.target={config['data.target']!r}: the embedded speech is in en"
    if config["data.corpus"] == "speech" and "," in config["data.source"]:
        return f"config.data.source={config['data.source']!r}: the embedded speech has one source; name one"
    return ""


def _shared_encoder(config: dict[str, Any]) -> str:
    if config["model.share_encoder"] and len(set(config["data.kind"].split(","))) > 1:
        return "config.model.share_encoder=True: sources of different kinds have encoders of their own; set it to false"
    return ""


def _packing_sources(config: dict[str, Any]) -> str:
    if config["data.packing"] and "," in config["data.source"]:
        return f"config.data.packing=True: packed rows have one source, but data.source={config['data.source']!r}"
    return ""


def _feature_width(config: dict[str, Any]) -> str:
    if "features" in config["data.kind"] and not config["data.feature_width"]:
        return "config.data.feature_width=0: set it to the width of the rows, at least 1"
    return ""


def _patches(config: dict[str, Any]) -> str:
    size, patch, longest = config["data.image_size"], config["data.patch_size"], config["data.max_length"]
    if "image" not in config["data.kind"]:
        return ""
    if size % patch:
        return f"config.data.patch_size={patch}: must divide data.image_size={size}"
    if (size // patch) ** 2 > longest:
        return f"config.data.max_length={longest}: an image has {(size // patch) ** 2} patches; set it to that or more"
    return ""


def _doubly_stochastic(config: dict[str, Any]) -> str:
    weight = config["loss.doubly_stochastic"]
    if weight and (config["model_name"] != "rnn" or config.get("model.attention") in ("none", "hard")):
        return f"config.loss.doubly_stochastic={weight}: needs model_name='rnn' with soft attention; set it to 0"
    return ""


def _convolution(config: dict[str, Any]) -> str:
    patch = config["data.patch_size"]
    if config["model.image_encoder"] != "convolution":
        return ""
    if "image" not in config["data.kind"]:
        return f"config.model.image_encoder='convolution': has no effect on data.kind={config['data.kind']!r}"
    if patch & (patch - 1) or patch < 4:
        return f"config.data.patch_size={patch}: model.image_encoder='convolution' needs a power of 2, at least 4"
    return ""


def _source_word_dropout(config: dict[str, Any]) -> str:
    fraction, kind = config["data.source_word_dropout"], config["data.kind"]
    if fraction and "text" not in kind:
        return f"config.data.source_word_dropout={fraction}: has no effect on data.kind={kind!r}; set it to 0"
    return ""


def _source_word_dropout_of_copies(config: dict[str, Any]) -> str:
    if config["data.source_word_dropout"] and config["model.copying"] != "none":
        return (
            f"config.data.source_word_dropout={config['data.source_word_dropout']}: a hidden word cannot be copied; "
            "set it to 0, or model.copying=none"
        )
    return ""


def _rarity_of_rows(config: dict[str, Any]) -> str:
    if config["data.kind"] != "text" and config["data.curriculum.difficulty"] == "rarity":
        return "config.data.curriculum.difficulty='rarity': rows have no words; use length or none"
    return ""


def _needs_text(key: str, off: Any) -> Rule:
    """The rule that a key has the value `off` if the source is not text."""

    def problem(config: dict[str, Any]) -> str:
        kind = config["data.kind"]
        if kind == "text" or config[key] == off:
            return ""
        return f"config.{key}={config[key]!r}: needs a source of text, but data.kind={kind!r}; set it to {off!r}"

    return Rule(("data.kind", key), problem)


def _needs_sequence(key: str, off: Any) -> Rule:
    """The rule that a key has the value `off` unless there is one source, of features or recordings."""

    def problem(config: dict[str, Any]) -> str:
        kind, source = config["data.kind"], config["data.source"]
        if (kind in SEQUENCES and "," not in source) or config[key] == off:
            return ""
        return (
            f"config.{key}={config[key]!r}: needs one source of features or recordings, but data.kind={kind!r} and "
            f"data.source={source!r}; set it to {off!r}"
        )

    return Rule(("data.kind", "data.source", key), problem)


RULES = (
    Rule(("data.source", "data.target"), _languages_differ),
    Rule(("data.corpus", "data.source", "data.target"), _embedded_languages),
    Rule(("data.filters",), _filters),
    Rule(("data.kind", "data.corpus"), _corpus_of_rows),
    Rule(("data.kind", "data.source"), _kind_of_each_source),
    Rule(("data.corpus", "data.name", "data.kind", "data.source", "data.target"), _scenes),
    Rule(("data.corpus", "data.source", "data.target"), _speech),
    Rule(("data.kind", "model.share_encoder"), _shared_encoder),
    Rule(("data.packing", "data.source"), _packing_sources),
    Rule(("data.kind", "data.feature_width"), _feature_width),
    Rule(("data.kind", "data.image_size", "data.patch_size", "data.max_length"), _patches),
    Rule(("data.kind", "data.patch_size", "model.image_encoder"), _convolution),
    Rule(("model_name", "loss.doubly_stochastic"), _doubly_stochastic),
    Rule(("data.kind", "data.curriculum.difficulty"), _rarity_of_rows),
    _needs_text("data.filters", []),
    _needs_text("data.packing", False),
    _needs_text("vocab.sampling_alpha", 0.0),
    _needs_text("vocab.lexicon", ""),
    _needs_text("model.copying", "none"),
    Rule(("data.kind", "data.source_word_dropout"), _source_word_dropout),
    Rule(("data.source_word_dropout", "model.copying"), _source_word_dropout_of_copies),
    _needs_sequence("data.spec_augment.frequency_masks", 0),
    _needs_sequence("data.spec_augment.time_masks", 0),
    _needs_sequence("model.pyramid_layers", 0),
    _needs_sequence("model.subsampling_layers", 0),
    _needs_sequence("loss.ctc", 0.0),
    Rule(("data.synthetic", "data.synthetic_ratio", "data.upsample"), _synthetic),
    Rule(("vocab.symbols",), _symbols),
    Rule(("optimizer.schedule", "optimizer.warmup_steps"), _noam),
    Rule(("optimizer.name", "optimizer.weight_decay"), _weight_decay),
    Rule(("task", "model_name", "data.packing"), _packing_model),
    Rule(("model_name", "data.carry_state", "loss.activation_penalty", "loss.temporal_penalty"), _recurrent_only),
    Rule(("data.carry_state", "model.cell"), _carried_cell),
    Rule(("model_name", "loss.language_model", "encoder.frozen"), _auxiliary_language_model),
    Rule(("data.max_length", "model.positions", "model.max_positions"), _learned_positions),
    Rule(("data.packing", "loss.risk.metric"), _packing_risk),
    Rule(("model.attention", "loss.risk.metric"), _hard_attention_risk),
    Rule(("model_name", "loss.coverage", "model.copying"), _coverage_of_copies),
    Rule(("loss.coverage", "model.attention"), _coverage_of_attention),
    Rule(("data.packing", "model.next_sentence"), _packing_next_sentence),
    Rule(("task", "data.packing", "data.curriculum.difficulty"), _curriculum_of_lines),
)
