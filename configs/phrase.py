"""Phrase-based translation (Koehn et al., 2003; Koehn, 2004) on Multi30k image captions, English to German.

    nmt-jax train --config=configs/phrase.py --config.data.directory=DIRECTORY --workdir=runs/phrase
    nmt-jax translate --workdir=runs/phrase --input=test_2016_flickr.en > test.hypothesis
    nmt-jax score test.hypothesis --reference=test_2016_flickr.de

DIRECTORY holds train.en, train.de, val.en, val.de, ... (plain or .gz). Words are aligned by an HMM in both directions;
the weights are tuned by PRO on val.

BLEU 34.67 on test_2016_flickr (cased; lower-cased 35.06), 23 sentences per CPU-second, 80 MB, on 2026-11-25
(docs/results/phrase-based.md).
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a test with a few sentences."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("phrase", "phrase")
    config.data.update(corpus="text", source="en", target="de", test="test_2016_flickr")
    return common.smoke(config) if arguments.smoke else config
