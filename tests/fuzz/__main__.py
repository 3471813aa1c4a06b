"""Runs cases until one is wrong too often, or the user interrupts: `python -m tests.fuzz --seed=1 [--cases=N]`."""

import argparse
import collections
import itertools
import pathlib
import random
import shutil
import tempfile

from tests.fuzz import workplace
from tests.fuzz.mistakes import draw
from tests.fuzz.runner import Runner


def main() -> None:
    """Draw and run cases; print each that is wrong, with its number, and keep its files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, help="default: until interrupted")
    parser.add_argument("--case", type=int, help="only this case, with its output")
    parser.add_argument("--folder", type=pathlib.Path, help="workplace; kept and used again")
    options = parser.parse_args()
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="nmt-jax-fuzz-"))
    if not folder.exists() or options.folder is None:
        folder.mkdir(parents=True, exist_ok=True)
        workplace.prepare(folder)
    numbers = [options.case] if options.case is not None else itertools.islice(itertools.count(), options.cases)
    codes: collections.Counter[int | None] = collections.Counter()
    wrong = 0
    with Runner(folder) as runner:
        for number in numbers:
            scratch = folder / f"case-{options.seed}-{number}"
            shutil.rmtree(scratch, ignore_errors=True)
            case = draw(random.Random(f"{options.seed}/{number}"), folder, scratch)
            outcome = runner.run(case)
            codes[outcome.code] += 1
            if fault := outcome.fault():
                wrong += 1
                print(f"case {number}: {fault}\n  {case}\n  {outcome.stderr.strip()[-600:]}\n", flush=True)
            elif options.case is not None:
                print(f"{case}\n{outcome.code}, {outcome.seconds:.1f} s\n{outcome.stderr}")
            else:
                shutil.rmtree(scratch)
            if number % 100 == 99:
                print(f"{number + 1} cases, {wrong} wrong, exit codes {dict(codes)}", flush=True)


if __name__ == "__main__":
    main()
