"""Protocols load, say the study's numbers, and are refused by name when a relation is broken."""

import pytest

from runner import protocol as protocols
from runner.names import CONTROL, SCENARIOS, VARIANTS
from runner.protocol import ProtocolError
from runner.runs.floor import protocol_floor_s

RAW = (protocols.PROTOCOLS_DIR / "study-1.toml").read_text()


def changed(old: str, new: str) -> bytes:
    assert RAW.count(old) >= 1, old
    return RAW.replace(old, new, 1).encode()


def in_table(table: str, old: str, new: str) -> bytes:
    """Change `old` to `new` in the named table alone."""
    head, rest = RAW.split(f"[{table}]", 1)
    assert old in rest
    return f"{head}[{table}]{rest.replace(old, new, 1)}".encode()


def test_study_1_says_what_the_article_says():
    p = protocols.load("study-1")
    assert (p.refund.refund_request_id, p.refund.captured_minor, p.refund.approved_minor) == (
        "ref-poc-001",
        10000,
        10000,
    )
    assert p.refund.currency == "BRL"
    assert (p.caller.deadline_ms, p.caller.total_max_attempts) == (3000, 1)
    assert (p.provider.function_timeout_s, p.provider.hold_budget_s) == (30, 20)
    assert (p.conventional.visibility_timeout_s, p.conventional.max_receive_count) == (60, 2)
    assert (p.durable.visibility_timeout_s, p.durable.execution_timeout_s) == (360, 300)
    assert (p.durable.step_name, p.durable.step_attempts, p.durable.step_retry_delay_s) == (
        "refund-attempt",
        2,
        60,
    )
    assert p.cost.ceiling_usd_cents == 500
    assert [(c.scenario, c.variant) for c in p.order] == [
        ("CONTROL", "conventional"),
        ("CONTROL", "durable"),
        ("COMMIT_THEN_TIMEOUT", "conventional"),
        ("COMMIT_THEN_TIMEOUT", "durable"),
    ]
    assert p.canonical is True


def test_the_rehearsal_has_the_same_shape_and_is_not_canonical():
    study, rehearsal = protocols.load("study-1"), protocols.load("study-1-rehearsal")
    assert rehearsal.canonical is False
    assert rehearsal.refund == study.refund
    assert rehearsal.order == study.order
    assert rehearsal.caller.deadline_ms == study.caller.deadline_ms
    assert rehearsal.conventional.visibility_timeout_s < 10


BROKEN = {
    "visibility below the function timeout": (
        in_table("variants.conventional", "visibility_timeout_s = 60", "visibility_timeout_s = 9"),
        "variants.conventional.visibility_timeout_s",
        "10 to 43200",
        "9",
    ),
    "execution timeout over 900 s": (
        in_table("variants.durable", "execution_timeout_s = 300", "execution_timeout_s = 901"),
        "variants.durable.execution_timeout_s",
        "to 900",
        "901",
    ),
    "durable visibility not above the execution timeout": (
        in_table("variants.durable", "visibility_timeout_s = 360", "visibility_timeout_s = 300"),
        "variants.durable.visibility_timeout_s",
        "301 to",
        "300",
    ),
    "amount over the captured amount": (
        changed("approved_minor = 10000", "approved_minor = 10001"),
        "refund.approved_minor is over refund.captured_minor",
        "at most 10000",
        "10001",
    ),
    "a float": (
        changed("approved_minor = 10000", "approved_minor = 10000.0"),
        "refund.approved_minor has the wrong type",
        "a whole number",
        "10000.0 (float)",
    ),
    "a boolean for an integer": (
        changed("batch_size = 1", "batch_size = true"),
        "variants.conventional.batch_size has the wrong type",
        "a whole number",
        "True (bool)",
    ),
    "an unknown key": (
        changed("deadline_ms = 3000", "deadline_ms = 3000\nretries = 1"),
        "caller has unknown key retries",
        "exactly deadline_ms",
        "retries",
    ),
    "a missing key": (
        changed("deadline_ms = 3000\n", ""),
        "caller has missing key deadline_ms",
        "exactly deadline_ms",
        "total_max_attempts",
    ),
    "hold budget not below the provider timeout": (
        changed("hold_budget_s = 20", "hold_budget_s = 30"),
        "provider.hold_budget_s",
        "4 to 29",
        "30",
    ),
    "more than one request on the wire": (
        changed("total_max_attempts = 1", "total_max_attempts = 2"),
        "caller.total_max_attempts",
        "1",
        "2",
    ),
    "no receive left for a retry": (
        changed("max_receive_count = 2", "max_receive_count = 1"),
        "variants.conventional.max_receive_count leaves no retry",
        "2 to 1000",
        "1",
    ),
    "an unknown currency": (changed('"BRL"', '"XXX"'), "refund.currency", "BRL", "'XXX'"),
    "an unknown scenario": (
        changed('scenario = "CONTROL"', 'scenario = "CHAOS"'),
        "order is not every cell once",
        "CONTROL",
        "CHAOS",
    ),
    "a single sample for quiescence": (
        changed("samples = 3", "samples = 1"),
        "quiescence.samples",
        "2 to",
        "1",
    ),
    "an execution that cannot hold its own attempts": (
        in_table("variants.durable", "execution_timeout_s = 300", "execution_timeout_s = 66"),
        "variants.durable.execution_timeout_s",
        "67 to 900",
        "66",
    ),
    "a wrong name": (changed('name = "study-1"', 'name = "study-2"'), "study.name", "study-1", "study-2"),
    "not TOML": (b"[study", "not valid TOML", "UTF-8 TOML", ""),
    "a table that is a value": (b"study = 1", "the top level has missing key", "exactly", "study"),
}


@pytest.mark.parametrize(("raw", "named", "expected", "found"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_protocol_is_refused_by_name_with_expected_and_found(raw, named, expected, found):
    with pytest.raises(ProtocolError) as refusal:
        protocols.parse(raw, "study-1")
    assert named in refusal.value.subject
    assert expected in refusal.value.expected
    assert found in refusal.value.found
    assert refusal.value.exit_code == 64


def test_an_unknown_protocol_is_refused_with_the_valid_names():
    with pytest.raises(ProtocolError) as refusal:
        protocols.load("study-9")
    assert refusal.value.expected == "one of study-1, study-1-rehearsal"


def test_the_floor_counts_the_protocols_own_waits():
    p = protocols.load("study-1")
    everything = p.cells(SCENARIOS, VARIANTS)
    # probe 3; conventional 60 + 2; durable 3 + 60 + 2; each control settles for 2.
    assert protocol_floor_s(p, p.cells(("COMMIT_THEN_TIMEOUT",), VARIANTS), False) == 3 + 65
    assert protocol_floor_s(p, p.cells((CONTROL,), VARIANTS), False) == 3 + 2
    assert protocol_floor_s(p, everything, True) == 3 + 62 + 65 + 2 + 2
