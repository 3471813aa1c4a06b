"""The models that `config.model_name` may name: Flax modules whose fields are their hyperparameters."""
