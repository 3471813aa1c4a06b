"""200 random cases with a fixed seed; `python -m tests.fuzz` runs others."""

import random

import pytest

from tests.fuzz.mistakes import draw
from tests.fuzz.runner import Runner

SEED, CASES, PARTS = 9, 200, 2


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_mistakes_end_in_a_result_or_one_line_of_error(part, workplace, tmp_path):
    wrong = []
    with Runner(tmp_path) as runner:
        for number in range(part, CASES, PARTS):
            case = draw(random.Random(f"{SEED}/{number}"), workplace, tmp_path / str(number))
            outcome = runner.run(case)
            if fault := outcome.fault():
                wrong.append(f"case {number}: {fault}: {case}\n{outcome.stderr[-300:]}")
    assert not wrong, f"{len(wrong)} cases (python -m tests.fuzz --seed={SEED} --case=N):\n" + "\n".join(wrong)
