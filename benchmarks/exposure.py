"""Exposure bias of trained recurrent networks: their loss with a falling rate of reference pieces as input.

    python -m benchmarks.exposure WORKDIR [WORKDIR ...]

The mean negative log-likelihood of the development set, in nats per target piece, when 100, 75, 50, 25 and 0 percent of
the previous pieces are those of the reference and the others are predictions of the model. The target is always the
reference, so the loss rises for any model; a model that has learned from its own predictions loses less.
"""

import argparse
import pathlib

from benchmarks import measure

SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workdirs", nargs="+")
    options = parser.parse_args()

    import jax
    import jax.numpy as jnp

    from nmt_jax.losses import cross_entropy as losses
    from nmt_jax.training.trained import open_trained
    from nmt_jax.workdir import Workdir

    for workdir in options.workdirs:
        task, params = open_trained(Workdir(pathlib.Path(workdir)), "translate")

        @jax.jit
        def loss(params, batch, share, task=task):
            reading = {"teacher_forcing": share, "rngs": {"teacher_forcing": jax.random.key(0)}}
            logits, _ = task.model.apply({"params": params}, batch["source"], batch["target"], **reading)
            weights = (batch["target"] != 0).astype(jnp.float32)
            return jnp.sum(losses.smoothed_cross_entropy(logits, batch["target"], 0.0) * weights), jnp.sum(weights)

        batches = [task.dev_batches[n] for n in range(len(task.dev_batches))]
        nats = {}
        for share in SHARES:
            sums = [loss(params, batch, jnp.float32(share)) for batch in batches]
            nats[f"{share:g}"] = round(float(sum(total for total, _ in sums) / sum(weight for _, weight in sums)), 3)
        measure.report(benchmark="exposure", workdir=workdir, nats_by_share_of_true_pieces=nats)


if __name__ == "__main__":
    main()
