r"""Back-translation (Sennrich et al., 2016): a few pairs, and monolingual German whose English is made by a model.

    nmt-jax train --config=configs/back_translation.py:stage=reverse --config.data.directory=DIRECTORY \
        --workdir=runs/reverse
    nmt-jax augment --kind=back_translation --workdir=runs/reverse --target=DIRECTORY/mono.de \
        --output=DIRECTORY/synthetic --search=beam --tag='<BT>'
    nmt-jax train --config=configs/back_translation.py --config.data.directory=DIRECTORY \
        --config.data.synthetic=DIRECTORY/synthetic --config.data.upsample=3 --workdir=runs/forward

DIRECTORY holds train.en, train.de, val.en, val.de, test_2016_flickr.en, test_2016_flickr.de and mono.de: for example
the first 7,250 pairs of Multi30k and the German captions of the others. Without data.synthetic, the last command trains
the baseline. `stage=reverse` exchanges the languages. The vocabulary is that of the pairs, so that all runs with the
same pairs share it. `size=small` has 2 layers of width 64 and 800 steps, for one CPU core.

test_2016_flickr, BLEU of `size=small` with 4,000 steps of 1,024 tokens, two seeds: 20.3 and 19.7 with the 7,250 pairs
only; 22.4 and 20.4 with back-translation by beam search, 21.5 and 20.8 by sampling, 21.2 and 21.7 tagged
(docs/results/back-translation.md has the command). `size=tiny`, the default, has not been run.
"""

import common
import multi30k
from ml_collections import ConfigDict

STAGES = {"forward": ("en", "de"), "reverse": ("de", "en")}
TAG = "<BT>"


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `stage=forward|reverse`, `size=tiny|small`, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, stage="forward", size="tiny", smoke=False)
    if arguments.stage not in STAGES or arguments.size not in ("tiny", "small"):
        raise ValueError(f"stage={arguments.stage},size={arguments.size}: choose forward or reverse, tiny or small")
    config = multi30k.get_config()
    config.data.source, config.data.target = STAGES[arguments.stage]
    config.data.num_buckets = 6
    config.vocab.update(size=4000, symbols=[TAG])
    config.train.update(steps=5000, eval_every=500, checkpoint_every=250)
    if arguments.size == "small":
        config.data.num_buckets = 3
        config.vocab.size = 2000
        config.model.update(num_encoder_layers=2, num_decoder_layers=2, d_model=64, d_ff=256, dropout=0.1)
        config.model.dtype = "float32"
        config.optimizer.warmup_steps = 200
        config.train.update(steps=800, batch_tokens=2048, eval_every=200, checkpoint_every=100, keep_last=3)
        config.eval.max_segments = 200
        config.decode.average = 3
    return common.smoke(config) if arguments.smoke else config
