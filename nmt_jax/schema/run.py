"""Keys of every config: `config.seed`, `init_from`, `optimizer`, `train` and `mesh`."""

from typing import Any

from nmt_jax.schema.key import Key, choice, count, rate

TOP: dict[str, Key] = {
    "seed": Key(0, "Seed of the parameters, of dropout and of the order of the data.", low=0, high=2**63 - 1),
    "init_from": Key(
        "",
        "Workdir of the same model whose best checkpoint has the initial parameters; its vocabulary is not taken over, "
        "so name that in vocab; empty = start from scratch.",
    ),
}

RUN: dict[str, dict[str, Any]] = {
    "optimizer": {
        "name": choice("adam", "Optimizer.", "adam", "adamw", "adagrad"),
        "schedule": choice(
            *("inverse_sqrt", "Learning rate after the warm-up."),
            *("inverse_sqrt", "noam", "cosine", "linear", "constant"),
        ),
        "learning_rate": Key(
            1e-3, "Peak value; for noam, a factor on (d_model * warmup_steps) ** -0.5.", above=0, high=1000
        ),
        "warmup_steps": count(4000, "Length of the linear warm-up.", "steps", low=0),
        "beta1": rate(0.9, "Decay of the mean of gradients; not for adagrad."),
        "beta2": rate(0.98, "Decay of the mean of squared gradients; not for adagrad."),
        "epsilon": Key(
            1e-9,
            "Added to the root of the mean of squared gradients; for adagrad, to their sum, under the root.",
            above=0,
            high=1,
        ),
        "weight_decay": Key(0.0, "Decoupled weight decay of matrices; requires adamw.", low=0, high=1000),
        "layer_decay": Key(
            1.0,
            "Factor on a layer's learning rate, relative to the layer above, for models with layers_0, layers_1 …; 1 = "
            "off.",
            above=0,
            high=1,
        ),
        "clip_norm": Key(0.0, "Maximum global norm of the gradient; 0 = no clipping.", low=0, high=10**9),
        "ema_decay": rate(0.0, "Decay of the exponential moving average of the parameters; 0 = off."),
    },
    "train": {
        "steps": count(2000, "Length of training.", "steps"),
        "batch_tokens": count(4096, "Size of the global batch, including padding.", "target tokens"),
        "accumulate": count(1, "Gradient accumulation: parts that each batch is divided into."),
        "log_every": count(10, "Interval between log entries.", "steps"),
        "eval_every": count(200, "Interval between evaluations.", "steps"),
        "checkpoint_every": count(200, "Interval between checkpoints.", "steps"),
        "keep_last": count(10, "Number of most recent checkpoints to keep."),
        "keep_best": count(1, "Number of best checkpoints to keep.", low=0),
        "early_stopping_metric": Key("", "Measure of the development set that selects the best checkpoint."),
        "patience": count(0, "Evaluations without improvement after which training stops; 0 = off.", low=0),
        "minutes": Key(
            0.0,
            "Maximum training time, with compilation, evaluation and earlier starts; 0 = off.",
            low=0,
            high=10**9,
            unit="minutes",
        ),
        "watchdog_minutes": Key(
            60.0,
            "Time without a step, an evaluation or a save after which a run is aborted; 0 = off.",
            0,
            10**9,
            unit="minutes",
        ),
    },
    "mesh": {
        "model": count(1, "Tensor parallelism: devices per copy of the model; the copies share the batch."),
        "fsdp": Key(False, "Also shard parameters and optimizer state over the devices that share the batch."),
    },
}

# Changes to `train` for `smoke=true`.
ONE_STEP = {
    "steps": 1,
    "batch_tokens": 512,
    "log_every": 1,
    "eval_every": 1,
    "checkpoint_every": 1,
    "keep_last": 1,
    "minutes": 0.0,
}
