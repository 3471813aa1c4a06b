"""BERT and its relatives in Hugging Face's files: names of tensors and settings."""

import functools

from nmt_jax.models.layers.deberta_stack import Deberta
from nmt_jax.models.layers.xlm_roberta_xl import XlmRobertaXL
from nmt_jax.pretrained.family import ACTIVATIONS, Choices, Family, Tensors

BERT = {
    "embeddings/word": "embeddings.word_embeddings.weight",
    "embeddings/position": "embeddings.position_embeddings.weight",
    "embeddings/segment": "embeddings.token_type_embeddings.weight",
    "embeddings/norm": "embeddings.LayerNorm",
    "layers_{}/query": "encoder.layer.{}.attention.self.query",
    "layers_{}/key": "encoder.layer.{}.attention.self.key",
    "layers_{}/value": "encoder.layer.{}.attention.self.value",
    "layers_{}/attention_output": "encoder.layer.{}.attention.output.dense",
    "layers_{}/attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "layers_{}/ffn_hidden": "encoder.layer.{}.intermediate.dense",
    "layers_{}/ffn_output": "encoder.layer.{}.output.dense",
    "layers_{}/ffn_norm": "encoder.layer.{}.output.LayerNorm",
    "pooler_dense": "pooler.dense",
}
EMBEDDINGS = {name: tensor for name, tensor in BERT.items() if name.startswith("embeddings/")}
DISTILBERT = {
    **EMBEDDINGS,
    "layers_{}/query": "transformer.layer.{}.attention.q_lin",
    "layers_{}/key": "transformer.layer.{}.attention.k_lin",
    "layers_{}/value": "transformer.layer.{}.attention.v_lin",
    "layers_{}/attention_output": "transformer.layer.{}.attention.out_lin",
    "layers_{}/attention_norm": "transformer.layer.{}.sa_layer_norm",
    "layers_{}/ffn_hidden": "transformer.layer.{}.ffn.lin1",
    "layers_{}/ffn_output": "transformer.layer.{}.ffn.lin2",
    "layers_{}/ffn_norm": "transformer.layer.{}.output_layer_norm",
}
ALBERT_LAYER = "encoder.albert_layer_groups.0.albert_layers.0"  # the only one
ALBERT = {
    **EMBEDDINGS,
    "embeddings/projection": "encoder.embedding_hidden_mapping_in",
    "layers_{}/query": f"{ALBERT_LAYER}.attention.query",
    "layers_{}/key": f"{ALBERT_LAYER}.attention.key",
    "layers_{}/value": f"{ALBERT_LAYER}.attention.value",
    "layers_{}/attention_output": f"{ALBERT_LAYER}.attention.dense",
    "layers_{}/attention_norm": f"{ALBERT_LAYER}.attention.LayerNorm",
    "layers_{}/ffn_hidden": f"{ALBERT_LAYER}.ffn",
    "layers_{}/ffn_output": f"{ALBERT_LAYER}.ffn_output",
    "layers_{}/ffn_norm": f"{ALBERT_LAYER}.full_layer_layer_norm",
    "pooler_dense": "pooler",
}
MPNET = {
    **BERT,
    "relative_bias/table": "encoder.relative_attention_bias.weight",
    "layers_{}/query": "encoder.layer.{}.attention.attn.q",
    "layers_{}/key": "encoder.layer.{}.attention.attn.k",
    "layers_{}/value": "encoder.layer.{}.attention.attn.v",
    "layers_{}/attention_output": "encoder.layer.{}.attention.attn.o",
    "layers_{}/attention_norm": "encoder.layer.{}.attention.LayerNorm",
}
SIZES = {
    "vocab_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "d_model": "hidden_size",
    "d_ff": "intermediate_size",
    "num_heads": "num_attention_heads",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "init_stddev": "initializer_range",
    "epsilon": "layer_norm_eps",
    "max_positions": "max_position_embeddings",
}
BERT_FIELDS = {**SIZES, "num_segments": "type_vocab_size"}
DISTILBERT_FIELDS = {
    "vocab_size": "vocab_size",
    "num_layers": "n_layers",
    "d_model": "dim",
    "d_ff": "hidden_dim",
    "num_heads": "n_heads",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "init_stddev": "initializer_range",
    "max_positions": "max_position_embeddings",
}
ORDINARY = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}
_bert = functools.partial(
    Family,
    tensors=BERT,
    fields=BERT_FIELDS,
    choices={"hidden_act": ACTIVATIONS},
    ordinary=ORDINARY,
    present={"pooler": ("pooler_dense/kernel", True)},
    ignored=("embeddings.position_ids", "embeddings.token_type_ids"),
)

# DeBERTa

DEBERTA: Tensors = {
    **BERT,
    "layers_{}/query": "encoder.layer.{}.attention.self.query_proj",
    "layers_{}/key": "encoder.layer.{}.attention.self.key_proj",
    "layers_{}/value": "encoder.layer.{}.attention.self.value_proj",
    "layers_{}/position_query": "encoder.layer.{}.attention.self.pos_query_proj",
    "layers_{}/position_key": "encoder.layer.{}.attention.self.pos_key_proj",
    "layers_{}/conv": "encoder.conv.conv",
    "layers_{}/conv_norm": "encoder.conv.LayerNorm",
    "positions": "encoder.rel_embeddings.weight",
    "positions_norm": "encoder.LayerNorm",
}
DEBERTA_FIELDS = {
    "vocab_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "d_model": "hidden_size",
    "d_ff": "intermediate_size",
    "num_heads": "num_attention_heads",
    "epsilon": "layer_norm_eps",
    "max_positions": "max_position_embeddings",
    "buckets": "position_buckets",
    "largest": "max_relative_positions",
    "conv_width": "conv_kernel_size",
}
_BOTH = {"to_positions": True, "from_positions": True}
DEBERTA_CHOICES: Choices = {
    "hidden_act": ACTIVATIONS,
    "conv_act": {
        "tanh": {"conv_activation": "tanh"},
        **{name: {"conv_activation": found["activation"]} for name, found in ACTIVATIONS.items()},
    },
    "pos_att_type": {
        "p2c|c2p": _BOTH,
        "c2p|p2c": _BOTH,
        "c2p": {"to_positions": True, "from_positions": False},
        "p2c": {"to_positions": False, "from_positions": True},
    },
    "share_att_key": {True: {"shared_keys": True}, False: {"shared_keys": False}},
    "norm_rel_ebd": {"layer_norm": {"norm_positions": True}, "none": {"norm_positions": False}},
}

XLM_ROBERTA_XL = {
    **{name: tensor for name, tensor in EMBEDDINGS.items() if not name.endswith("norm")},
    "layers_{}/self_attention/query": "encoder.layer.{}.attention.self.query",
    "layers_{}/self_attention/key": "encoder.layer.{}.attention.self.key",
    "layers_{}/self_attention/value": "encoder.layer.{}.attention.self.value",
    "layers_{}/self_attention/output": "encoder.layer.{}.attention.output.dense",
    "layers_{}/self_attention_residual/layer_norm": "encoder.layer.{}.attention.self_attn_layer_norm",
    "layers_{}/ffn/hidden": "encoder.layer.{}.intermediate.dense",
    "layers_{}/ffn/output": "encoder.layer.{}.output.dense",
    "layers_{}/ffn_residual/layer_norm": "encoder.layer.{}.LayerNorm",
    "layers_{}/final_norm": "encoder.LayerNorm",
}
TRAINING = ("dropout", "attention_dropout", "init_stddev")  # hyperparameters of models that can be trained

BERT_FAMILIES = {
    "bert": _bert("BertModel"),
    "roberta": _bert("RobertaModel", pad_id=1, counts_from_pad=True),
    "xlm-roberta": _bert("XLMRobertaModel", pad_id=1, counts_from_pad=True),
    "camembert": _bert("CamembertModel", pad_id=1, counts_from_pad=True),
    "distilbert": Family(
        "DistilBertModel",
        DISTILBERT,
        DISTILBERT_FIELDS,
        {"activation": ACTIVATIONS},
        constant={"num_segments": 0, "epsilon": 1e-12, "pooler": False},
        ordinary=ORDINARY,
    ),
    "bleurt": _bert(
        "BleurtModel",
        tensors={**BERT, "embeddings/projection": "encoder.embedding_projection"},
        fields={**BERT_FIELDS, "embedding_width": "embedding_size"},
        defaults={"embedding_size": 0},
    ),
    "rembert": _bert(
        "RemBertModel",
        tensors={**BERT, "embeddings/projection": "encoder.embedding_hidden_mapping_in"},
        fields={**BERT_FIELDS, "embedding_width": "input_embedding_size"},
        projects=True,
    ),
    "albert": _bert(
        "AlbertModel",
        tensors=ALBERT,
        fields={**BERT_FIELDS, "embedding_width": "embedding_size"},
        constant={"share_layers": True},
        projects=True,
        ordinary={**ORDINARY, "num_hidden_groups": 1, "inner_group_num": 1},
    ),
    "electra": _bert(
        "ElectraModel",
        tensors={**BERT, "embeddings/projection": "embeddings_project"},
        fields={**BERT_FIELDS, "embedding_width": "embedding_size"},
    ),
    "mpnet": _bert(
        "MPNetModel",
        tensors=MPNET,
        fields={**SIZES, "relative_buckets": "relative_attention_num_buckets"},
        constant={"num_segments": 0},
        pad_id=1,
        counts_from_pad=True,
    ),
    "xlm-roberta-xl": Family(
        "XLMRobertaXLModel",
        XLM_ROBERTA_XL,
        {field: key for field, key in BERT_FIELDS.items() if field not in TRAINING},
        {"hidden_act": ACTIVATIONS},
        module=XlmRobertaXL,
        ordinary=ORDINARY,
        ignored=("embeddings.position_ids", "embeddings.token_type_ids"),
        pad_id=1,
        counts_from_pad=True,
    ),
    "deberta-v2": Family(
        "DebertaV2Model",
        DEBERTA,
        DEBERTA_FIELDS,
        DEBERTA_CHOICES,
        module=Deberta,
        ordinary={
            "relative_attention": True,
            "position_biased_input": False,
            "type_vocab_size": 0,
            "conv_groups": 1,
        },
        defaults={
            "relative_attention": False,
            "position_biased_input": True,
            "type_vocab_size": 0,
            "share_att_key": False,
            "norm_rel_ebd": "none",
            "position_buckets": -1,
            "max_relative_positions": -1,
            "conv_kernel_size": 0,
            "conv_act": "tanh",
        },
        ignored=("embeddings.position_ids", "embeddings.position_embeddings.weight"),  # in files, but not used
    ),
}
