"""T5, BART and their relatives in Hugging Face's files: names of tensors and settings."""

import functools
from collections.abc import Mapping
from typing import Any

from nmt_jax.models.layers.bart_stack import Bart, BartEncoder
from nmt_jax.models.layers.t5_stack import T5, T5Encoder
from nmt_jax.pretrained.family import ACTIVATIONS, Choices, Family, Tensors

# T5

T5_ENCODER: Tensors = {
    "embeddings/word": ("shared.weight", "encoder.embed_tokens.weight"),
    "relative_bias/table": "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "layers_{}/attention_norm": "encoder.block.{}.layer.0.layer_norm",
    "layers_{}/attention/query": "encoder.block.{}.layer.0.SelfAttention.q",
    "layers_{}/attention/key": "encoder.block.{}.layer.0.SelfAttention.k",
    "layers_{}/attention/value": "encoder.block.{}.layer.0.SelfAttention.v",
    "layers_{}/attention/output": "encoder.block.{}.layer.0.SelfAttention.o",
    "layers_{}/ffn_norm": "encoder.block.{}.layer.1.layer_norm",
    "layers_{}/ffn_hidden": "encoder.block.{}.layer.1.DenseReluDense.wi",
    "layers_{}/ffn_gate": "encoder.block.{}.layer.1.DenseReluDense.wi_0",
    "layers_{}/ffn_linear": "encoder.block.{}.layer.1.DenseReluDense.wi_1",
    "layers_{}/ffn_output": "encoder.block.{}.layer.1.DenseReluDense.wo",
    "layers_{}/final_norm": "encoder.final_layer_norm",
}
T5_SEQ2SEQ: Tensors = {
    **{f"encoder/{name}": tensor for name, tensor in T5_ENCODER.items()},
    "decoder_bias/table": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "decoder_layers_{}/attention_norm": "decoder.block.{}.layer.0.layer_norm",
    "decoder_layers_{}/attention/query": "decoder.block.{}.layer.0.SelfAttention.q",
    "decoder_layers_{}/attention/key": "decoder.block.{}.layer.0.SelfAttention.k",
    "decoder_layers_{}/attention/value": "decoder.block.{}.layer.0.SelfAttention.v",
    "decoder_layers_{}/attention/output": "decoder.block.{}.layer.0.SelfAttention.o",
    "decoder_layers_{}/cross_attention_norm": "decoder.block.{}.layer.1.layer_norm",
    "decoder_layers_{}/cross_attention/query": "decoder.block.{}.layer.1.EncDecAttention.q",
    "decoder_layers_{}/cross_attention/key": "decoder.block.{}.layer.1.EncDecAttention.k",
    "decoder_layers_{}/cross_attention/value": "decoder.block.{}.layer.1.EncDecAttention.v",
    "decoder_layers_{}/cross_attention/output": "decoder.block.{}.layer.1.EncDecAttention.o",
    "decoder_layers_{}/ffn_norm": "decoder.block.{}.layer.2.layer_norm",
    "decoder_layers_{}/ffn_hidden": "decoder.block.{}.layer.2.DenseReluDense.wi",
    "decoder_layers_{}/ffn_gate": "decoder.block.{}.layer.2.DenseReluDense.wi_0",
    "decoder_layers_{}/ffn_linear": "decoder.block.{}.layer.2.DenseReluDense.wi_1",
    "decoder_layers_{}/ffn_output": "decoder.block.{}.layer.2.DenseReluDense.wo",
    "decoder_layers_{}/final_norm": "decoder.final_layer_norm",
    "output_table": "/lm_head.weight",
}
T5_FIELDS = {
    "vocab_size": "vocab_size",
    "num_layers": "num_layers",
    "d_model": "d_model",
    "d_kv": "d_kv",
    "d_ff": "d_ff",
    "num_heads": "num_heads",
    "relative_buckets": "relative_attention_num_buckets",
    "largest_distance": "relative_attention_max_distance",
    "max_positions": "n_positions",
    "epsilon": "layer_norm_epsilon",
}
T5_DEFAULTS = {
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "n_positions": 512,
    "feed_forward_proj": "relu",
    "tie_word_embeddings": True,
}
T5_CHOICES: Choices = {
    "feed_forward_proj": {
        "relu": {"activation": "relu", "gated": False},
        "gated-gelu": {"activation": "gelu", "gated": True},
    }
}
SCALES_OUTPUT: Choices = {"tie_word_embeddings": {True: {"scales_output": True}, False: {"scales_output": False}}}
_t5_encoder = functools.partial(
    Family,
    tensors=T5_ENCODER,
    fields=T5_FIELDS,
    choices=T5_CHOICES,
    module=T5Encoder,
    defaults=T5_DEFAULTS,
    ignored=("embed_tokens.weight",),
)
_t5 = functools.partial(
    Family,
    tensors=T5_SEQ2SEQ,
    fields={**T5_FIELDS, "num_decoder_layers": "num_decoder_layers"},
    module=T5,
    defaults=T5_DEFAULTS,
    same={"num_decoder_layers": "num_layers"},
    present={"tied": ("output_table", False)},
    # The second is in files of old programs, which did not use it.
    ignored=("embed_tokens.weight", "layer.1.EncDecAttention.relative_attention_bias.weight"),
)

# BART

BART_ENCODER: Tensors = {
    "embeddings/word": ("shared.weight", "encoder.embed_tokens.weight"),
    "embeddings/position": "encoder.embed_positions.weight",
    "embeddings/norm": "encoder.layernorm_embedding",
    "layers_{}/self_attention/query": "encoder.layers.{}.self_attn.q_proj",
    "layers_{}/self_attention/key": "encoder.layers.{}.self_attn.k_proj",
    "layers_{}/self_attention/value": "encoder.layers.{}.self_attn.v_proj",
    "layers_{}/self_attention/output": "encoder.layers.{}.self_attn.out_proj",
    "layers_{}/self_attention_residual/layer_norm": "encoder.layers.{}.self_attn_layer_norm",
    "layers_{}/ffn/hidden": "encoder.layers.{}.fc1",
    "layers_{}/ffn/output": "encoder.layers.{}.fc2",
    "layers_{}/ffn_residual/layer_norm": "encoder.layers.{}.final_layer_norm",
    "layers_{}/final_norm": "encoder.layer_norm",
}
BART_SEQ2SEQ: Tensors = {
    **{f"encoder/{name}": tensor for name, tensor in BART_ENCODER.items()},
    "decoder_embeddings/position": "decoder.embed_positions.weight",
    "decoder_embeddings/norm": "decoder.layernorm_embedding",
    "decoder_layers_{}/self_attention/query": "decoder.layers.{}.self_attn.q_proj",
    "decoder_layers_{}/self_attention/key": "decoder.layers.{}.self_attn.k_proj",
    "decoder_layers_{}/self_attention/value": "decoder.layers.{}.self_attn.v_proj",
    "decoder_layers_{}/self_attention/output": "decoder.layers.{}.self_attn.out_proj",
    "decoder_layers_{}/self_attention_residual/layer_norm": "decoder.layers.{}.self_attn_layer_norm",
    "decoder_layers_{}/cross_attention/query": "decoder.layers.{}.encoder_attn.q_proj",
    "decoder_layers_{}/cross_attention/key": "decoder.layers.{}.encoder_attn.k_proj",
    "decoder_layers_{}/cross_attention/value": "decoder.layers.{}.encoder_attn.v_proj",
    "decoder_layers_{}/cross_attention/output": "decoder.layers.{}.encoder_attn.out_proj",
    "decoder_layers_{}/cross_attention_residual/layer_norm": "decoder.layers.{}.encoder_attn_layer_norm",
    "decoder_layers_{}/ffn/hidden": "decoder.layers.{}.fc1",
    "decoder_layers_{}/ffn/output": "decoder.layers.{}.fc2",
    "decoder_layers_{}/ffn_residual/layer_norm": "decoder.layers.{}.final_layer_norm",
    "decoder_norm": "decoder.layer_norm",
    "output_bias": "/final_logits_bias",
}
BART_FIELDS = {
    "vocab_size": "vocab_size",
    "num_layers": "encoder_layers",
    "d_model": "d_model",
    "d_ff": "encoder_ffn_dim",
    "num_heads": "encoder_attention_heads",
    "max_positions": "max_position_embeddings",
}
BART_DECODER_FIELDS = {
    "num_decoder_layers": "decoder_layers",
    "d_decoder_ff": "decoder_ffn_dim",
    "num_decoder_heads": "decoder_attention_heads",
}
BART_CHOICES: Choices = {
    "activation_function": ACTIVATIONS,
    "scale_embedding": {False: {"scales_words": False}, True: {"scales_words": True}},
}
# Old files have these keys; other values were of models that were never published.
BART_ORDINARY = {"normalize_embedding": True, "add_final_layer_norm": False, "static_position_embeddings": False}
_bart_encoder = functools.partial(
    Family,
    tensors=BART_ENCODER,
    fields=BART_FIELDS,
    choices=BART_CHOICES,
    module=BartEncoder,
    defaults={"scale_embedding": False},
    ignored=("embed_tokens.weight",),
    pad_id=1,
)
_bart = functools.partial(
    Family,
    tensors=BART_SEQ2SEQ,
    fields={**BART_FIELDS, **BART_DECODER_FIELDS},
    choices=BART_CHOICES,
    module=Bart,
    defaults={"scale_embedding": False},
    present={"has_output_bias": ("output_bias", True)},
    ignored=("embed_tokens.weight",),
    pad_id=1,
    start_id=2,
)
POST: Mapping[str, Any] = {"constant": {"norm": "post"}, "ordinary": {**BART_ORDINARY, "normalize_before": False}}
PRE: Mapping[str, Any] = {"constant": {"norm": "pre"}}

SEQ2SEQ_ENCODERS = {
    "t5": _t5_encoder("T5EncoderModel"),
    "mt5": _t5_encoder("MT5EncoderModel"),
    "bart": _bart_encoder("BartModel", **POST),
    "mbart": _bart_encoder("MBartModel", **PRE),
}
SEQ2SEQ = {
    "t5": _t5("T5ForConditionalGeneration", choices={**T5_CHOICES, **SCALES_OUTPUT}),
    "mt5": _t5("MT5ForConditionalGeneration", choices=T5_CHOICES, constant={"scales_output": False}),
    "bart": _bart("BartForConditionalGeneration", **POST),
    "mbart": _bart("MBartForConditionalGeneration", **PRE),
}
