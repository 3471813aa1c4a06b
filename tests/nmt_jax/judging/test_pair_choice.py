import pytest

from nmt_jax.data.readers.judgements import Columns
from nmt_jax.errors import UserError
from nmt_jax.judging.pair_choice import score_texts


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        (["bleu"], "needed, not 1: "),
        (["bleu", "bleu"], "needed, not 2 with the same name: "),
        (["bleu", "bleu", "ter"], "needed, not 3: "),
    ],
)
def test_two_metrics_are_needed(metrics, words):
    with pytest.raises(UserError, match=words):
        score_texts("missing.tsv", Columns(), metrics, [], {})
