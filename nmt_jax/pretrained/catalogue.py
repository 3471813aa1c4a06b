"""Published encoders that load, and the layer that bert-score uses for each."""

import os
import pathlib
from collections.abc import Mapping
from typing import NamedTuple

from metrics_jax.embedding.encoder import Encoder


class Published(NamedTuple):
    """A published model.

    family: `model_type`. layers, width: of the encoder. licence: of the weights, as its authors state it. layer: the
    hidden state that bert-score compares by default; None if it does not know the model.
    """

    family: str
    layers: int
    width: int
    licence: str
    layer: int | None


APACHE, MIT = "Apache-2.0", "MIT"

# Layers of BERTScore: the table model2layers of bert-score 0.3.13, by correlation with human judgements of WMT 2016.
PUBLISHED: Mapping[str, Published] = {
    "google-bert/bert-base-uncased": Published("bert", 12, 768, APACHE, 9),
    "google-bert/bert-large-uncased": Published("bert", 24, 1024, APACHE, 18),
    "google-bert/bert-base-multilingual-cased": Published("bert", 12, 768, APACHE, 9),
    "google-bert/bert-base-chinese": Published("bert", 12, 768, APACHE, 8),
    "allenai/scibert_scivocab_uncased": Published("bert", 12, 768, APACHE, 8),
    "sentence-transformers/LaBSE": Published("bert", 12, 768, APACHE, None),
    "sentence-transformers/all-MiniLM-L6-v2": Published("bert", 6, 384, APACHE, None),
    "distilbert/distilbert-base-uncased": Published("distilbert", 6, 768, APACHE, 5),
    "distilbert/distilbert-base-multilingual-cased": Published("distilbert", 6, 768, APACHE, 5),
    "FacebookAI/roberta-base": Published("roberta", 12, 768, MIT, 10),
    "FacebookAI/roberta-large": Published("roberta", 24, 1024, MIT, 17),
    "FacebookAI/roberta-large-mnli": Published("roberta", 24, 1024, MIT, 19),
    "distilbert/distilroberta-base": Published("roberta", 6, 768, APACHE, 5),
    "FacebookAI/xlm-roberta-base": Published("xlm-roberta", 12, 768, MIT, 9),
    "FacebookAI/xlm-roberta-large": Published("xlm-roberta", 24, 1024, MIT, 17),
    "almanach/camembert-base": Published("camembert", 12, 768, MIT, None),
    "google/rembert": Published("rembert", 32, 1152, APACHE, None),
    "albert/albert-base-v1": Published("albert", 12, 768, APACHE, 10),
    "albert/albert-large-v1": Published("albert", 24, 1024, APACHE, 17),
    "albert/albert-xlarge-v1": Published("albert", 24, 2048, APACHE, 16),
    "albert/albert-xxlarge-v1": Published("albert", 12, 4096, APACHE, 8),
    "albert/albert-base-v2": Published("albert", 12, 768, APACHE, 9),
    "albert/albert-large-v2": Published("albert", 24, 1024, APACHE, 14),
    "albert/albert-xlarge-v2": Published("albert", 24, 2048, APACHE, 13),
    "albert/albert-xxlarge-v2": Published("albert", 12, 4096, APACHE, 8),
    "google/electra-small-discriminator": Published("electra", 12, 256, APACHE, 11),
    "google/electra-base-discriminator": Published("electra", 12, 768, APACHE, 9),
    "google/electra-large-discriminator": Published("electra", 24, 1024, APACHE, 14),
    "microsoft/mpnet-base": Published("mpnet", 12, 768, MIT, 8),
    "sentence-transformers/all-mpnet-base-v2": Published("mpnet", 12, 768, APACHE, None),
    "microsoft/deberta-v2-xlarge": Published("deberta-v2", 24, 1536, MIT, 10),
    "microsoft/deberta-v2-xlarge-mnli": Published("deberta-v2", 24, 1536, MIT, 17),
    "microsoft/deberta-v2-xxlarge": Published("deberta-v2", 48, 1536, MIT, 21),
    "microsoft/deberta-v2-xxlarge-mnli": Published("deberta-v2", 48, 1536, MIT, 22),
    "microsoft/deberta-v3-xsmall": Published("deberta-v2", 12, 384, MIT, 10),
    "microsoft/deberta-v3-small": Published("deberta-v2", 6, 768, MIT, 4),
    "microsoft/deberta-v3-base": Published("deberta-v2", 12, 768, MIT, 9),
    "microsoft/deberta-v3-large": Published("deberta-v2", 24, 1024, MIT, 12),
    "microsoft/mdeberta-v3-base": Published("deberta-v2", 12, 768, MIT, 10),
    "google-t5/t5-small": Published("t5", 6, 512, APACHE, 6),
    "google-t5/t5-base": Published("t5", 12, 768, APACHE, 11),
    "google-t5/t5-large": Published("t5", 24, 1024, APACHE, 23),
    "google/mt5-small": Published("mt5", 8, 512, APACHE, 8),
    "google/mt5-base": Published("mt5", 12, 768, APACHE, 11),
    "google/mt5-large": Published("mt5", 24, 1024, APACHE, 19),
    "google/mt5-xl": Published("mt5", 24, 2048, APACHE, 24),
    "facebook/bart-base": Published("bart", 6, 768, APACHE, 6),
    "facebook/bart-large": Published("bart", 12, 1024, APACHE, 10),
    "facebook/bart-large-cnn": Published("bart", 12, 1024, MIT, 10),
    "facebook/bart-large-mnli": Published("bart", 12, 1024, MIT, 11),
    "facebook/bart-large-xsum": Published("bart", 12, 1024, MIT, 9),
    "facebook/mbart-large-50": Published("mbart", 12, 1024, MIT, 12),
}
_BY_NAME = {name.partition("/")[2].lower(): published for name, published in PUBLISHED.items()}


def published_at(place: str | os.PathLike[str]) -> Published | None:
    """The published model that a folder, or a name with `download`, is named after; None if it is not known.

    The name is that of the folder, without the owner, or of a snapshot in the cache of the Hugging Face hub. What
    config.json names is not used: in a fine-tuned model, it is often the model that training started from.
    """
    path = pathlib.Path(place)
    cached = [part.split("--")[-1] for part in path.parts if part.startswith("models--")]
    return next((_BY_NAME[name.lower()] for name in (path.name, *cached) if name.lower() in _BY_NAME), None)


def recommended_layer(place: str | os.PathLike[str], encoder: Encoder) -> int | None:
    """The layer that bert-score uses for the model at a place, as BERTScore's `layer`; None if it is not known.

    It is also None if the encoder has another number of layers than the model of this name.
    """
    found = published_at(place)
    if found is None or found.layer is None:
        return None
    from metrics_jax.embedding.forward import shape_of_states  # late: imports JAX

    return found.layer if shape_of_states(encoder.embed) == (found.layers + 1, found.width) else None
