"""The supported encoders in Hugging Face's format, by `model_type`."""

from nmt_jax.pretrained.bert_families import BERT_FAMILIES
from nmt_jax.pretrained.seq2seq_families import SEQ2SEQ_ENCODERS

ENCODERS = {**BERT_FAMILIES, **SEQ2SEQ_ENCODERS}
