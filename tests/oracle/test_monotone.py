"""The verdict is monotone: damage and absence make no pass, and an intact second effect is a fail.

Each damage is judged under a fresh index, so integrity cannot see it. Hypothesis draws the damage.
"""

from __future__ import annotations

import copy
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle import generate
from tests.oracle.frozen import reindex
from tests.oracle.memory import judge

GOOD = generate.small_good_packages()
FAILING, PASSING = (
    ("treatment", "treatment durable"),
    ("control", "control durable", "idempotent", "idempotent durable"),
)
RANDOM = st.randoms(use_true_random=False)


def examples(number):
    return settings(
        max_examples=number, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )


def trial_verdict(files) -> str:
    """The verdict of the one real trial, or of nothing at all."""
    trials = [trial for trial in judge(files).trials if trial.trial_id != "probe-1"]
    return trials[0].verdict if trials else "indeterminate"


def test_whole_packages_have_their_verdicts():
    found = {name: judge(generate.render(docs)).verdict for name, docs in GOOD.items()}
    assert found == {**dict.fromkeys(PASSING, "pass"), **dict.fromkeys(FAILING, "fail")}


@examples(150)
@given(name=st.sampled_from(FAILING), rng=RANDOM, times=st.integers(1, 4))
def test_no_damage_turns_a_fail_into_a_pass(name, rng, times):
    docs = copy.deepcopy(GOOD[name])
    done = [generate.damage(rng, docs) for _ in range(times)]
    assert judge(generate.render(docs)).verdict != "pass", done


@examples(150)
@given(name=st.sampled_from(FAILING), rng=RANDOM)
def test_no_damaged_byte_turns_a_fail_into_a_pass(name, rng):
    files = reindex(generate.bytes_damage(rng, generate.render(GOOD[name])))
    assert judge(files).verdict != "pass"


@examples(200)
@given(name=st.sampled_from(FAILING), rng=RANDOM, times=st.integers(1, 3))
def test_an_intact_second_effect_is_always_a_fail(name, rng, times):
    docs = copy.deepcopy(GOOD[name])
    ledger = next(path for path in docs if path.endswith("ledger.jsonl") and "probe" not in path)
    done = [generate.damage(rng, docs, spare=(ledger,)) for _ in range(times)]
    assert trial_verdict(generate.render(docs)) == "fail", done
    assert judge(generate.render(docs)).verdict == "fail", done


@examples(100)
@given(name=st.sampled_from(FAILING), which=st.integers(0, 1), rng=RANDOM)
def test_one_intact_snapshot_of_two_effects_is_enough(name, which, rng):
    docs = copy.deepcopy(GOOD[name])
    ledger = next(path for path in docs if path.endswith("ledger.jsonl") and "probe" not in path)
    parent, key = rng.choice(list(generate.places(docs[ledger][which])))
    parent[key] = rng.choice(generate.GARBAGE)
    assert judge(generate.render(docs)).verdict == "fail"


@examples(150)
@given(name=st.sampled_from(PASSING), rng=RANDOM, times=st.integers(2, 5))
def test_taking_evidence_away_never_makes_a_pass(name, rng, times):
    """Once it is not a pass, nothing that is taken away in addition makes it one."""
    docs, lost, done = copy.deepcopy(GOOD[name]), False, []
    for _ in range(times):
        done.append(generate.damage(rng, docs, removal_only=True))
        verdict = judge(generate.render(docs)).verdict
        assert not (lost and verdict == "pass"), done
        lost = lost or verdict != "pass"


def test_every_file_is_needed_for_a_pass():
    for name in PASSING:
        for path in GOOD[name]:
            docs = {other: document for other, document in GOOD[name].items() if other != path}
            assert judge(generate.render(docs)).verdict == "indeterminate", (name, path)


@pytest.mark.parametrize("name", PASSING)
def test_every_line_is_needed_for_a_pass(name):
    for path, document in GOOD[name].items():
        for number in range(len(document) if isinstance(document, list) else 0):
            docs = {**GOOD[name], path: document[:number] + document[number + 1 :]}
            assert judge(generate.render(docs)).verdict == "indeterminate", (path, number)


@pytest.mark.parametrize("name", PASSING)
def test_every_journal_and_ledger_item_is_needed_for_a_pass(name):
    for path, document in GOOD[name].items():
        for number, line in enumerate(document if isinstance(document, list) else []):
            for position in range(len(line["response"].get("Items", []))):
                docs = copy.deepcopy(GOOD[name])
                response = docs[path][number]["response"]
                if "probe" in path and response["Items"][position].get("entry") == {"S": "REQUEST"}:
                    continue  # how the probe's request ended is nobody's question
                del response["Items"][position]
                response["Count"] = len(response["Items"])
                assert judge(generate.render(docs)).verdict == "indeterminate", (path, number, position)


@examples(300)
@given(seed=st.integers(0, 2**32), times=st.integers(1, 3), rng=RANDOM)
def test_no_damage_to_any_trial_with_two_effects_makes_a_pass(seed, times, rng):
    package = generate.random_package(random.Random(seed))
    if len({row["transaction_id"] for row in effects(package)}) < 2:
        return
    done = [generate.damage(rng, package.docs) for _ in range(times)]
    assert judge(generate.render(package.docs)).verdict != "pass", done


def effects(package):
    return [{"transaction_id": item["transaction_id"]["S"]} for item in generate.rows(package)[0]["Items"]]
