"""Plan every config page on some topologies, and write the table of docs/results/plans.md.

    python -m benchmarks.plan_pages --output=docs/results/plans.md [--topology=v5e:2x2 --topology=h100:8]

Needs the compilers of the extra `plan`. Every page is planned by its own process, `nmt-jax plan --format=json`, whose
compiled programs are kept on disk: the command can be stopped, and continues where it was. The table is written after
every page. A page that cannot be planned is listed with the reason.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import time
from typing import Any

from nmt_jax import config as configs
from nmt_jax.planning.table import markdown

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {"transformer": ("base", "big")}  # arguments of pages that have several sizes
TOPOLOGIES = ("v5e:2x2", "h100:8")
# What a page needs beside its defaults: the tagger reads features of ELMo, here of the published size.
NEEDED = {"elmo_tagger": {"data.elmo": "published"}}
BFLOAT16 = {"model.dtype": "bfloat16", "encoder.dtype": "bfloat16"}
HEADER = (
    *("page", "topology", "parameters", "batch", "peak GB", "of GB", "TFLOP", "memory GB", "network GB"),
    *("arithmetic ms", "memory ms", "network ms", "bound by", "tokens/s at most", "MFU at most"),
)
TITLE = """# Plans

What the training steps of config pages need on accelerators, compiled without any
([how to](../how-to/plan.md)): per device, for the largest batch that the config allows, {precision}. `tokens/s` is for
all devices. The bounds assume that arithmetic, memory and network overlap perfectly. The metric of `minimum_risk.py`
runs on the host and is not part of the plan.

Command, on {date}:

```sh
{command}
```

"""


def specs(names: list[str]) -> list[str]:
    """All pages, or those of these names, with their sizes."""
    pages = names or sorted(path.stem for path in (ROOT / "configs").glob("*.py") if path.stem != "common")
    return [f"{page}.py:size={size}" if size else f"{page}.py" for page in pages for size in SIZES.get(page, ("",))]


def plan_command(config: str, topology: str, changes: dict[str, str]) -> list[str]:
    """The command that plans the training step of a config with these changes, and prints JSON."""
    command = [sys.executable, "-m", "nmt_jax", "plan", f"--config={config}", f"--topology={topology}"]
    command += ["--programs=train", "--tries=0", "--format=json"]
    return command + [f"--config.{key}={value}" for key, value in changes.items()]


def planned(spec: str, topology: str, overrides: dict[str, str], smoke: bool) -> tuple[dict[str, Any] | None, str]:
    """The plan of a page, or None and the reason why there is none."""
    page = spec.partition(".py")[0]
    path = f"configs/{page}.py:smoke=true" if smoke else f"configs/{spec}"
    keys = configs.flatten(configs.load(str(ROOT / path)))
    changes = {**{key: value for key, value in overrides.items() if key in keys}, **NEEDED.get(page, {})}
    command = plan_command(path, topology, changes)
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    reason = (finished.stderr.strip().splitlines() or [""])[-1].removeprefix("nmt-jax: error: ")
    return (json.loads(finished.stdout)[0], reason) if finished.stdout else (None, reason)


def row(spec: str, topology: str, plan: dict[str, Any]) -> list[str]:
    """The cells of a page."""
    step = plan["programs"][0]
    limit, peak = plan["peaks"]["memory"], step["peak"]
    cells = [f"`{spec}`", topology, f"{plan['parameters']:,}", "x".join(map(str, step["shape"]))]
    cells += [f"{peak / 1e9:.3g}" if peak else "", f"{limit / 1e9:.0f}" + " (does not fit)" * (not step["fits"])]
    if not step["roofline"]:
        return cells + [""] * 9
    cells += [f"{step['flops'] / 1e12:.3g}", f"{step['bytes_accessed'] / 1e9:.3g}", f"{step['bytes_sent'] / 1e9:.3g}"]
    cells += [f"{1000 * step['roofline'][name]:.3g}" for name in ("arithmetic", "memory", "network")]
    return [*cells, step["bound"], f"{step['tokens_per_second']:,.0f}", f"{step['utilization']:.0%}"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--topology", action="append", help=f"Default: {' and '.join(TOPOLOGIES)}.")
    parser.add_argument("--page", action="append", default=[], help="Only these pages, by name.")
    parser.add_argument("--override", action="append", default=[], help="KEY=VALUE, for pages that have the key.")
    parser.add_argument("--float32", action="store_true", help="Keep the precision of the pages.")
    parser.add_argument("--smoke", action="store_true", help="Plan the smoke tests of the pages, to try this script.")
    arguments = parser.parse_args()
    overrides = {} if arguments.float32 else dict(BFLOAT16)
    overrides |= dict(override.split("=", 1) for override in arguments.override)
    precision = "in the precision of the page" if arguments.float32 else "in bfloat16"
    command = " ".join(["python -m benchmarks.plan_pages", *sys.argv[1:]])
    title = TITLE.format(precision=precision, date=datetime.date.today(), command=command)
    rows: list[list[str]] = []
    failures: list[str] = []
    for spec in specs(arguments.page):
        for topology in arguments.topology or TOPOLOGIES:
            start = time.monotonic()
            plan, reason = planned(spec, topology, overrides, arguments.smoke)
            print(f"{spec} {topology}: {time.monotonic() - start:.0f} s {'' if plan else reason}", file=sys.stderr)
            if plan:
                rows.append(row(spec, topology, plan))
            else:
                failures.append(f"- `{spec}` on {topology}: {reason}")
            missing = "\n\nNot planned:\n\n" + "\n".join(failures) if failures else ""
            arguments.output.write_text(f"{title}{markdown(HEADER, rows)}{missing}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
