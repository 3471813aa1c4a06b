"""A flag that would be ignored is an error that names the flag it needs."""

import pytest

TRANSLATE = ("translate", "--workdir=w")
CASES = {
    ("--temperature", "without --num_samples"): (*TRANSLATE, "--temperature=0.5"),
    ("--seed", "without --num_samples"): (*TRANSLATE, "--seed=0"),
    ("--replacement", "without --num_samples"): (*TRANSLATE, "--noreplacement"),
    ("--diversity", "without --num_groups"): (*TRANSLATE, "--diversity=0.1", "--num_groups=1"),
    ("--beam_size", "with --num_samples"): (*TRANSLATE, "--num_samples=2", "--beam_size=3"),
    ("--beam_size", "with --num_samples or --given"): (*TRANSLATE, "--given=f", "--beam_size=3"),
    ("--max_length_ratio", "with --given"): (*TRANSLATE, "--given=f", "--max_length_ratio=3"),
    ("--evaluate", "without --utility"): (*TRANSLATE, "--num_samples=2", "--evaluate=ter"),
    ("--encoder", "without --utility"): (*TRANSLATE, "--encoder=bert"),
    ("--finalists", "without --method=aggregate"): ("mbr", "--finalists=2"),
    ("--confidence", "without --method=prune"): ("mbr", "--confidence=0.5"),
    ("--seed", "without --method=prune"): ("mbr", "--seed=1", "--method=aggregate"),
    ("--temperature", "without --weights=probability"): ("mbr", "--temperature=2"),
    ("--source", "without --direct or --channel"): ("rerank", "--weights=w", "--source=s"),
    ("--metric", "without --tune"): ("rerank", "--weights=w", "--metric=ter"),
    ("--weights", "with --tune"): ("rerank", "--weights=w", "--tune=r"),
    ("--seed", "without --confidence"): ("score", "h", "--reference=r", "--seed=1"),
    ("--segments and --paired", "exclude"): ("score", "h", "--reference=r", "--segments", "--paired=bootstrap"),
    ("--trials", "without --confidence or --significance"): ("judge", "f", "--human=h", "--trials=10"),
    ("--num_pairs", "without --baseline"): ("calibrate", "f", "--idf=i", "--num_pairs=10"),
    ("--source", "without --kind=length"): ("plot", "--workdir=w", "--source=f"),
    ("--encoder", "without --kind=attention|similarity|flow"): ("plot", "--workdir=w", "--encoder=bert"),
    ("--devices", "without --on=local"): ("launch", "--on=tpu", "--devices=2", "--", "nmt-jax", "train"),
}


@pytest.mark.parametrize(("flag", "reason"), CASES)
def test_a_flag_without_effect_is_an_error(flag, reason, mistake):
    error = mistake(*CASES[flag, reason])
    assert error.startswith(flag)
    assert reason in error
