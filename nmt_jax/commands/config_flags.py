"""The flag that overrides keys of a config."""

from absl import flags

from nmt_jax import config as configs


def define_override_flag(flag_values: flags.FlagValues) -> None:
    """Define `--override`; `nmt-jax` turns `--config.KEY=VALUE` into it."""
    help_text = "Override a key of the config: KEY=VALUE; --config.KEY=VALUE does the same."
    flags.DEFINE_multi_string("override", [], help_text, flag_values=flag_values)


def overrides(flag_values: flags.FlagValues) -> dict[str, str]:
    """Return the overridden keys and their values, as text."""
    return dict(configs.split_override(text) for text in flag_values.override)
