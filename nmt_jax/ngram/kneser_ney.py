"""Interpolated modified Kneser-Ney smoothing (Chen and Goodman, 1999), as in KenLM's lmplz (Heafield et al., 2013)."""

from collections.abc import Sequence

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.ngram.counts import Counts
from nmt_jax.ngram.model import NgramModel
from nmt_jax.ngram.vocabulary import BOS
from nmt_jax.progress import track

Discounts = tuple[float, float, float]  # of adjusted counts of 1, 2, and 3 or more

ADVICE = "use more text, a lower --order, or fixed discounts such as --discount_fallback=0.5,1,1.5"


def estimate(counts: Counts, fallback: Discounts | None = None) -> tuple[NgramModel, list[Discounts]]:
    """Returns the model of a text and the discounts of each order.

    p(w | h) = (a(h w) - D(a(h w))) / sum_x a(h x) + gamma(h) p(w | h'), where a are adjusted counts, h' is h without
    its first word, and gamma(h) the discounted share of h. Unigrams are interpolated with the uniform distribution over
    all words but `<s>`. Log-probabilities and backoffs log10 gamma(h) are float64.

    fallback: discounts for orders for which they cannot be computed. Raises UserError if there are such orders and no
    fallback, and ValueError if a discount of the fallback is not above 0 and at most 1, 2 and 3.
    """
    if fallback and not _are_valid(fallback):
        raise ValueError(f"discounts {fallback}: must be above 0 and at most 1, 2 and 3")
    trie = counts.trie
    suffixes = trie.suffixes()
    lower = np.full(1, 1 / (trie.num_words - 1))  # <s> is never predicted
    chosen, log_probabilities, backoffs = [], [], []
    all_adjusted = track(counts.adjusted(suffixes), "estimating orders", trie.order)
    for order, adjusted in enumerate(all_adjusted, start=1):
        try:
            chosen.append(closed_form_discounts(adjusted, order))
        except UserError:
            if not fallback:
                raise
            chosen.append(fallback)
        contexts = trie.contexts(order) if order > 1 else np.zeros(trie.num_words, np.int64)
        shorter = suffixes[order - 2] if order > 1 else contexts
        subtracted = np.array([0.0, *chosen[-1]])[np.minimum(adjusted, 3)]
        totals = np.bincount(contexts, adjusted, minlength=len(lower))
        held_back = np.bincount(contexts, subtracted, minlength=len(lower))
        gamma = np.divide(held_back, totals, out=np.ones(len(lower)), where=totals > 0)
        if order > 1:
            backoffs.append(_log10(gamma))
        lower = (adjusted - subtracted) / totals[contexts] + gamma[contexts] * lower[shorter]
        log_probabilities.append(np.minimum(_log10(lower), 0))
        if order == 1:
            log_probabilities[0][BOS] = 0
    return NgramModel(counts.vocabulary, trie, tuple(log_probabilities), tuple(backoffs)), chosen


def closed_form_discounts(adjusted: np.ndarray, order: int) -> Discounts:
    """Returns D_k = k - (k + 1) Y n_{k+1} / n_k for k = 1, 2, 3, with Y = n_1 / (n_1 + 2 n_2).

    n_k: how many adjusted counts are k (Chen and Goodman, 1999, equation 26). Raises UserError if n_1, n_2 or n_3 is 0,
    or if a discount is not between 0 and k.
    """
    n = np.bincount(adjusted[adjusted < 5], minlength=5)
    for number in (1, 2, 3):
        if not n[number]:
            raise UserError(f"no {order}-gram has the adjusted count {number}: too little or unusual text; {ADVICE}")
    y = n[1] / (n[1] + 2 * n[2])
    first, second, third = (float(number - (number + 1) * y * n[number + 1] / n[number]) for number in (1, 2, 3))
    for number, discount in enumerate((first, second, third), start=1):
        if not 0 <= discount <= number:
            what = f"the discount {discount:.4g} for {order}-grams with adjusted count {number} is not in [0, {number}]"
            raise UserError(f"{what}: too little or unusual text; {ADVICE}")
    return first, second, third


def parse_fallback(text: Sequence[str]) -> Discounts:
    """Returns three discounts given as text. Raises UserError for anything else."""
    try:
        first, second, third = map(float, text)
    except ValueError:
        raise UserError("--discount_fallback needs three numbers, such as 0.5,1,1.5") from None
    if not _are_valid((first, second, third)):
        raise UserError("--discount_fallback: the discounts must be above 0 and at most 1, 2 and 3")
    return first, second, third


def _are_valid(discounts: Discounts) -> bool:
    return all(0 < discount <= number for number, discount in enumerate(discounts, start=1))


def _log10(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):  # a discount may be 0
        return np.log10(values)
