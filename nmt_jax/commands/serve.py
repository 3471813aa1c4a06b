"""`nmt-jax serve`: a page and a JSON interface for trained models and metrics."""

import pathlib
import sys
from collections.abc import Sequence

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import define_metric_flags, define_metrics_flag, metric_options
from nmt_jax.errors import UserError
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.storage.paths import local_path_of


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax serve`."""
    help_text = (
        "Folder of a trained translator, or several, separated by commas, as an ensemble; or of a language model, a "
        "BERT, or an encoder that was fine-tuned. Repeat for more models."
    )
    flags.DEFINE_multi_string("workdir", [], help_text, flag_values)
    streams.define_checkpoint_flags(flag_values)
    define_metrics_flag(flag_values, ["bleu", "chrf", "ter"])
    define_metric_flags(flag_values)
    flags.DEFINE_string("runs", None, "Folder whose runs the page shows, those of sweeps included.", flag_values)
    help_text = "Address to listen on; 0.0.0.0 lets other machines connect."
    flags.DEFINE_string("host", "127.0.0.1", help_text, flag_values)
    define_integer(flag_values, "port", 8000, "Port to listen on; 0: any free port.", low=0, high=65_535)
    help_text = "File with a token that requests must send as `Authorization: Bearer TOKEN`; recommended with --host."
    flags.DEFINE_string("token_file", None, help_text, flag_values)
    help_text = "Number of lines that may wait; further requests are refused with status 429."
    define_integer(flag_values, "queue", 2000, help_text, low=1)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Serve until SIGINT or SIGTERM."""
    streams.check_no_arguments("serve", positional)
    shown = (flag_values.workdir, flag_values.encoder is not None, flag_values["metrics"].present, flag_values.runs)
    if not any(shown):
        raise UserError(
            "nmt-jax serve needs --workdir=FOLDER with a trained model, --encoder=PLACE, --metrics=NAME,… or "
            "--runs=FOLDER"
        )
    runs = local_path_of(flag_values.runs).expanduser() if flag_values.runs is not None else None
    if runs is not None and not runs.is_dir():
        raise UserError(f"--runs={flag_values.runs}: no such folder")
    token = _token(flag_values.token_file) if flag_values.token_file is not None else ""
    workdirs = [streams.existing_folders(value.split(",")) for value in flag_values.workdir]
    try:
        from nmt_jax.serving.server import Server, listen
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise UserError("nmt-jax serve needs starlette and uvicorn: pip install 'nmt-jax[serve]'") from None
    from nmt_jax.serving.guards import LOOPBACK
    from nmt_jax.serving.models import Models

    with listen(flag_values.host, flag_values.port) as listening:  # before the models, which take seconds
        models = Models.open(
            workdirs,
            flag_values.metrics,
            streams.chosen_checkpoint(flag_values),
            **metric_options(flag_values),
        )
        if runs is not None:
            models.show_runs(runs)
        local = flag_values.host in LOOPBACK
        server = Server(models, queue=flag_values.queue, token=token, local=local)
        listening.listen(2048)
        host, port = listening.getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        print(f"nmt-jax: serving at http://{host}:{port}/ ; Ctrl-C stops", file=sys.stderr, flush=True)
        server.run(listening, models.warm_up())  # between the first requests
    print("nmt-jax: stopped", file=sys.stderr)
    return 0


def _token(name: str) -> str:
    """Return the token in a file. Raises UserError if it is empty or has a character that headers cannot carry."""
    token = pathlib.Path(name).expanduser().read_text(encoding="ascii", errors="replace").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UserError(f"{name}: must contain a token of printable ASCII characters without spaces")
    return token
