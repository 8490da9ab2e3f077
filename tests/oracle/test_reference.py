"""The oracle agrees with a second judge that was written from FORMAT.md alone, on generated trials."""

from __future__ import annotations

import collections
import random

import pytest

from tests.oracle import generate, reference
from tests.oracle.memory import judge

# Numbers in a template may be written in more ways than the reference knows.
SPARED = ("template.json",)


def generated(seed: int):
    """A trial, perhaps an accident, perhaps damage: the files, and what was done."""
    rng, done = random.Random(seed), []
    package = generate.random_package(rng)
    if rng.random() < 0.4:
        generate.accident(rng, package)
    if rng.random() < 0.2:
        done.append(generate.damage(rng, package.docs, SPARED))
    return generate.render(package.docs), done


def compare(seeds) -> collections.Counter:
    verdicts: collections.Counter = collections.Counter()
    for seed in seeds:
        files, done = generated(seed)
        (trial,) = [trial for trial in judge(files).trials if trial.trial_id == "t"]
        said = (trial.verdict, trial.ledger_transactions or 0, trial.processing, trial.effect_knowledge)
        assert said == reference.judge(files), f"seed {seed} {done}"
        verdicts[trial.verdict] += 1
    return verdicts


def test_agrees_with_the_reference_judge():
    verdicts = compare(range(250))
    # A comparison of nothing but one verdict would compare nothing.
    assert min(verdicts[name] for name in ("pass", "fail", "indeterminate")) > 30


@pytest.mark.slow
def test_agrees_with_the_reference_judge_on_thousands():
    verdicts = compare(range(1_000, 5_000))
    assert sum(verdicts.values()) == 4_000
