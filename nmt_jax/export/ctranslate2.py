"""Export of a Transformer to CTranslate2, an inference library in C++ (Klein et al., 2020)."""

import pathlib
from typing import Any

import numpy as np

from nmt_jax.data.vocabulary.vocab import BOS, EOS, UNK, Vocab
from nmt_jax.errors import UserError
from nmt_jax.models.layers.embedding import sinusoids
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.transformer import Model

try:
    from ctranslate2.specs import common_spec, transformer_spec
except ImportError as error:
    raise UserError("--to=ctranslate2 needs CTranslate2: pip install 'nmt-jax[ctranslate2]'") from error

ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELUTanh,
    "gelu_erf": common_spec.Activation.GELU,
    "swiglu": common_spec.Activation.SWISH,
    "quick_gelu": common_spec.Activation.GELUSigmoid,
}
LONGEST = 1025  # positions in a sinusoidal table: CTranslate2's default maximum of 1024 pieces, and EOS

# These settings make CTranslate2's search equivalent to ours (docs/results/export.md). patience=2 stops at 2K finished
# hypotheses; the tiny penalty keeps it from stopping at the first hypothesis that leads. EOS counts in lengths, and
# the K most probable hypotheses are ranked with Wu's penalty afterwards.
PROGRAM = '''"""Translate lines of stdin to stdout (pip install ctranslate2 sentencepiece)."""

import pathlib
import sys

import ctranslate2
import sentencepiece

BEAM_SIZE, LENGTH_PENALTY = {beam_size}, {length_penalty}  # alpha of Wu et al. (2016), eq. 14

folder = pathlib.Path(__file__).parent
translator = ctranslate2.Translator(str(folder))
source, target = (
    sentencepiece.SentencePieceProcessor(model_file=str(folder / name)) for name in ("source.model", "target.model")
)
sys.stdin.reconfigure(encoding="utf-8-sig", newline="\\n")
sys.stdout.reconfigure(encoding="utf-8", newline="\\n")
lines = [line.removesuffix("\\n") for line in sys.stdin]
results = translator.translate_batch(
    [source.encode(line, out_type=str) for line in lines],
    max_batch_size=32,
    beam_size=BEAM_SIZE,
    num_hypotheses=BEAM_SIZE,
    patience=2,
    length_penalty=1e-6,
    min_decoding_length=0,
    return_end_token=True,
    return_scores=True,
    disable_unk=True,
)
for line, result in zip(lines, results):
    penalties = [((5 + len(pieces)) / 6) ** LENGTH_PENALTY for pieces in result.hypotheses]
    score, pieces = max(
        (score / penalty, pieces) for score, penalty, pieces in zip(result.scores, penalties, result.hypotheses)
    )
    text = target.decode([piece for piece in pieces if piece != "{end}"]) if line.strip(" ") else ""
    print(" ".join(text.split("\\n")))
'''


def write(
    model: Model,
    params: dict[str, Any],
    vocabularies: tuple[Vocab, Vocab],
    folder: pathlib.Path,
    *,
    quantization: str,
    beam_size: int,
    length_penalty: float,
) -> None:
    """Writes model.bin, config.json, vocabularies, SentencePiece models and `translate.py` to an existing folder.

    quantization: of the matrices, in the library's terms (int8 …). beam_size, length_penalty: settings of the search in
    `translate.py`. CTranslate2 itself appends EOS to the source and prepends BOS to the target.
    """
    spec = transformer_spec.TransformerSpec.from_config(
        (model.num_encoder_layers, model.num_decoder_layers),
        model.num_heads,
        pre_norm=model.norm == "pre",
        activation=ACTIVATIONS[model.activation],
        ffn_glu=model.activation == "swiglu",
    )
    source = params["source_embedding"]["table"]
    target = source if model.tie_embeddings == "three-way" else params["target_embedding"]["table"]
    output = params["output_table"]["table"] if model.tie_embeddings == "none" else target
    spec.encoder.embeddings[0].weight = _copy(source)
    spec.decoder.embeddings.weight = _copy(target)
    spec.decoder.projection.weight = _copy(output)
    for part, name, positions in (spec.encoder, "encoder", "position"), (spec.decoder, "decoder", "target_position"):
        part.scale_embeddings = True
        learned = model.positions == "learned"
        table = params[positions]["table"] if learned else sinusoids(LONGEST, model.d_model)
        part.position_encodings.encodings = _copy(table)
        if model.norm == "pre":
            _norm(part.layer_norm, params[f"{name}_norm"])
        for number, layer in enumerate(part.layer):
            _layer(layer, model, params[f"{name}_{number}"])

    pieces = [vocab.pieces(range(len(vocab))) for vocab in vocabularies]
    spec.register_source_vocabulary(pieces[0])
    spec.register_target_vocabulary(pieces[1])
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = (pieces[1][i] for i in (UNK, BOS, EOS))
    spec.config.decoder_start_token = pieces[1][BOS]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = LayerNorm.epsilon
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))
    for side, vocab in zip(("source", "target"), vocabularies, strict=True):
        vocab.save(folder / f"{side}.model")
    program = PROGRAM.format(beam_size=beam_size, length_penalty=length_penalty, end=pieces[1][EOS])
    (folder / "translate.py").write_text(program, encoding="utf-8")


def _copy(array: Any) -> np.ndarray:
    """A writable float32 copy, because CTranslate2 quantizes in place."""
    return np.array(array, np.float32)


def _layer(layer: Any, model: Model, params: dict[str, Any]) -> None:
    """Sets the weights of a layer of the encoder or the decoder."""
    weights = _attention(model, params["self_attention"])
    _norm(layer.self_attention.layer_norm, params["self_attention_residual"]["layer_norm"])
    layer.self_attention.linear[0].weight = np.concatenate(weights[:3])
    layer.self_attention.linear[1].weight = weights[3]
    attentions = [layer.self_attention]
    if "cross_attention" in params:
        query, key, value, output = _attention(model, params["cross_attention"])
        _norm(layer.attention.layer_norm, params["cross_attention_residual"]["layer_norm"])
        layer.attention.linear[0].weight = query
        layer.attention.linear[1].weight = np.concatenate([key, value])
        layer.attention.linear[2].weight = output
        attentions.append(layer.attention)
    for attention in attentions:
        attention.queries_scale = np.float32((model.d_k or model.d_model // model.num_heads) ** -0.5)
    _norm(layer.ffn.layer_norm, params["ffn_residual"]["layer_norm"])
    linears = {"hidden": layer.ffn.linear_0, "output": layer.ffn.linear_1}
    if model.activation == "swiglu":
        linears["gate"] = layer.ffn.linear_0_noact
    for name, linear in linears.items():
        linear.weight, linear.bias = _copy(params["ffn"][name]["kernel"]).T, _copy(params["ffn"][name]["bias"])


def _attention(model: Model, params: dict[str, Any]) -> list[np.ndarray]:
    """Query, key, value and output weights, float32[out, in]; zeros pad all heads to the same width."""
    kernels = [_copy(params[name]["kernel"]).T for name in ("query", "key", "value")]
    kernels.append(_copy(params["output"]["kernel"]))
    heads = [kernel.reshape(model.num_heads, -1, model.d_model) for kernel in kernels]
    width = max(head.shape[1] for head in heads)
    query, key, value, output = (
        np.pad(head, ((0, 0), (0, width - head.shape[1]), (0, 0))).reshape(-1, model.d_model) for head in heads
    )
    return [query, key, value, output.T]


def _norm(layer: Any, params: dict[str, Any]) -> None:
    layer.gamma, layer.beta = _copy(params["scale"]), _copy(params["bias"])
