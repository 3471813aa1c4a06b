"""`nmt-jax prepare`: prepares the corpus of a config as training would, on all cores or on a cluster."""

import os
import pathlib
import tempfile
from collections.abc import Sequence

from absl import flags
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import define_override_flag, overrides
from nmt_jax.data.prepared.beam_engine import RUNNERS, BeamEngine
from nmt_jax.data.prepared.engine import Engine
from nmt_jax.errors import UserError
from nmt_jax.progress import print_table


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax prepare`."""
    flags.DEFINE_string("config", None, "Config file: FILE.py or FILE.py:ARGUMENT.", flag_values)
    help_text = "Engine of Apache Beam; direct: all cores of this machine."
    flags.DEFINE_enum("runner", "direct", RUNNERS, help_text, flag_values)
    help_text = "NAME=VALUE: option of the engine, such as direct_num_workers=4 or job_endpoint=HOST:PORT; repeatable."
    flags.DEFINE_multi_string("runner_option", [], help_text, flag_values)
    define_override_flag(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Prepare the corpus, and print the folders of its splits."""
    streams.check_no_arguments("prepare", positional, "--config=FILE")
    if not flag_values.config:
        raise UserError("nmt-jax prepare needs --config=FILE, for example --config=configs/transformer.py")
    config = configs.load(flag_values.config, overrides(flag_values))
    if config.task != "translate":
        raise UserError(
            f"nmt-jax prepare: config.task={config.task!r} is prepared by `nmt-jax train`; this verb prepares the "
            "parallel corpora of task 'translate'"
        )
    for folder in run(config, BeamEngine(flag_values.runner, flag_values.runner_option)):
        print(folder)
    return 0


def run(config: ConfigDict, engine: Engine) -> list[pathlib.Path]:
    """Prepare vocabularies and corpora with an engine; returns the folders of the training and development split."""
    os.environ["JAX_PLATFORMS"] = "cpu"  # accelerators are for training
    from nmt_jax.distributed import sharding
    from nmt_jax.tasks.translate import Translate
    from nmt_jax.training.run import check_model

    check_model(config)
    with tempfile.TemporaryDirectory() as workdir:  # training finds the vocabulary in the cache
        task = Translate(config, pathlib.Path(workdir), sharding.make_mesh())
        task.engine = engine
        print_table(task.summary())
        return [corpus.directory for corpus in (*task.train_corpus.parts, task.dev_corpus)]
