"""Default settings of every training run: `config.optimizer`, `config.train` and `config.mesh`."""

from typing import Any

RUN: dict[str, Any] = {
    "optimizer": {
        "name": "adam",  # adam | adamw | adagrad
        "schedule": "inverse_sqrt",  # after the warm-up: inverse_sqrt | noam | cosine | linear | constant
        "learning_rate": 1e-3,  # peak value; for noam, a factor on (d_model * warmup_steps) ** -0.5
        "warmup_steps": 4000,
        "beta1": 0.9,
        "beta2": 0.98,
        "epsilon": 1e-9,
        "weight_decay": 0.0,  # decoupled weight decay on matrices (adamw)
        "layer_decay": 1.0,  # each layer's learning rate is this factor times that of the layer above; 1 = off
        "clip_norm": 0.0,  # maximum global gradient norm; 0 = no clipping
        "ema_decay": 0.0,  # decay of the exponential moving average of the parameters; 0 = off
    },
    "train": {
        "steps": 2000,
        "batch_tokens": 4096,  # target tokens in the global batch, including padding (for classify: words)
        "accumulate": 1,  # micro-batches per step (gradient accumulation)
        "log_every": 10,  # steps
        "eval_every": 200,  # steps
        "checkpoint_every": 200,  # steps
        "keep_last": 10,  # number of most recent checkpoints to keep
        "keep_best": 1,  # number of best checkpoints to keep
        "early_stopping_metric": "",  # development-set measure that selects the best checkpoint; set by the task
        "patience": 0,  # stop after this many evaluations without improvement; 0 = off
        "minutes": 0.0,  # stop after this much training time; 0 = off
        "watchdog_minutes": 60.0,  # abort if no step, evaluation or save finishes for this long; 0 = off
    },
    "mesh": {
        "model": 1,  # devices per copy of the model (tensor parallelism); the copies share the batch
        "fsdp": False,  # also shard parameters and optimizer state over the devices that share the batch
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
