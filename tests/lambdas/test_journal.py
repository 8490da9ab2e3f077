"""The journal writer: gapless, each event exactly once, whatever becomes of the answers."""

import itertools
import threading

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from lambdas.shared.journal import (
    MAX_TURNS,
    Appended,
    AppendExhausted,
    CompanionConflict,
    Journal,
    event_entry,
)
from tests.lambdas.fake_dynamodb import (
    CONFLICT,
    DELAYED,
    DROPPED,
    FATES,
    LOST,
    OK,
    THROTTLE,
    FakeDynamoDB,
    client_error,
)
from tests.lambdas.lab import JOURNAL, TRIAL


def journal(client, source="caller", prefix="e"):
    ids = itertools.count(1)
    return Journal(
        client,
        JOURNAL,
        source,
        now_ms=lambda: 1_700_000_000_000,
        new_id=lambda: f"{prefix}{next(ids)}",
        sleep=lambda _: None,
    )


def fates(*outcomes):
    """These fates in turn, then OK for ever."""
    left = iter(outcomes)
    return lambda: next(left, OK)


def stored(fake):
    """The journal as (seq, event id), and the counter."""
    events = {
        item["entry"]["S"]: item["event_id"]["S"]
        for (table, *_), item in fake.items.items()
        if table == JOURNAL and item["entry"]["S"].startswith("EVENT#")
    }
    counter = fake.items.get((JOURNAL, TRIAL, "COUNTER"), {"n": {"N": "0"}})
    return [events[name] for name in sorted(events)], sorted(events), int(counter["n"]["N"])


def assert_gapless(fake, expected_ids):
    ids, entries, count = stored(fake)
    assert entries == [event_entry(seq) for seq in range(1, count + 1)]
    assert sorted(ids) == sorted(expected_ids)
    return ids


# --- on moto, one thread ---


def test_an_event_carries_its_facts_in_the_agreed_form(lab):
    appended = lab.runner.append(
        TRIAL,
        "trial_opened",
        attempt=1,
        delivery_id="d",
        receive_count=2,
        lambda_request_id="l",
        transaction_id="t",
        caused_by="c",
        elapsed_ms=3,
        detail={"variant": "durable", "n": 4, "flag": True},
        event_id="mine",
    )
    assert appended == Appended(1, "mine")
    answer = lab.client.get_item(
        TableName=JOURNAL, Key={"trial_id": {"S": TRIAL}, "entry": {"S": "EVENT#000001"}}
    )
    assert answer["Item"] == {
        "trial_id": {"S": TRIAL},
        "entry": {"S": "EVENT#000001"},
        "seq": {"N": "1"},
        "event_id": {"S": "mine"},
        "source": {"S": "runner"},
        "type": {"S": "trial_opened"},
        "at_ms": {"N": "1"},
        "attempt": {"N": "1"},
        "delivery_id": {"S": "d"},
        "receive_count": {"N": "2"},
        "lambda_request_id": {"S": "l"},
        "transaction_id": {"S": "t"},
        "caused_by": {"S": "c"},
        "elapsed_ms": {"N": "3"},
        "detail": {"M": {"variant": {"S": "durable"}, "n": {"N": "4"}, "flag": {"BOOL": True}}},
    }


def test_what_does_not_apply_is_absent(lab):
    lab.runner.append(TRIAL, "trial_opened")
    (event,) = lab.events()
    assert set(event) == {"trial_id", "entry", "seq", "event_id", "source", "type", "at_ms"}


def test_trials_are_numbered_apart(lab):
    assert [lab.runner.append(trial, "x").seq for trial in ("a", "b", "a", "a", "b")] == [1, 1, 2, 3, 2]


def test_a_refused_companion_is_named_and_nothing_is_applied(lab):
    lab.arm()
    good = {"Put": {"TableName": "ledger", "Item": {"trial_id": {"S": TRIAL}, "transaction_id": {"S": "t"}}}}
    with pytest.raises(CompanionConflict) as refused:
        lab.runner.append(TRIAL, "barrier_expired", companions=[good, lab.barrier.expire(TRIAL, "d")])
    assert (refused.value.index, refused.value.operation, refused.value.table) == (1, "Update", "barrier")
    assert lab.types() == ["barrier_armed"]
    assert lab.entry("COUNTER")["n"] == 1
    assert lab.rows("ledger") == []


def test_errors_that_no_repeat_can_cure_are_raised_at_once(lab):
    lost = Journal(lab.client, "no-such-table", "runner", sleep=lambda _: None)
    with pytest.raises(ClientError, match="ResourceNotFound"):
        lost.append(TRIAL, "x")


def test_d24_a_float_is_refused_before_anything_is_sent():
    fake = FakeDynamoDB()
    with pytest.raises(TypeError, match="float"):
        journal(fake).append(TRIAL, "x", detail={"amount": 19.99})
    assert fake.transactions == 0


# --- answers that are lost, on the fake ---


@pytest.mark.parametrize("honours_tokens", [False, True], ids=["tokens ignored", "tokens honoured"])
@pytest.mark.parametrize("bad", [LOST, DROPPED, CONFLICT, THROTTLE, DELAYED])
def test_one_bad_turn_still_gives_one_event(bad, honours_tokens):
    fake = FakeDynamoDB(fates(bad), honours_tokens)
    assert journal(fake).append(TRIAL, "x") == Appended(1, "e1")
    assert_gapless(fake, ["e1"])


def test_our_own_write_is_recognised_after_others_have_moved_on():
    fake = FakeDynamoDB(fates(LOST))
    rival = journal(fake, "provider", prefix="rival")
    ours = Journal(
        fake, JOURNAL, "caller", new_id=lambda: "ours", now_ms=lambda: 1,
        sleep=lambda pause: pause and [rival.append(TRIAL, "y") for _ in range(3)],
    )  # fmt: skip
    assert ours.append(TRIAL, "x") == Appended(1, "ours")
    assert assert_gapless(fake, ["ours", "rival1", "rival2", "rival3"])[0] == "ours"


def test_a_write_that_lands_late_is_not_written_twice():
    # It lands between our read of the counter and our next transaction, and that one is dropped too.
    fake = FakeDynamoDB(fates(DELAYED, DROPPED))
    assert journal(fake).append(TRIAL, "x") == Appended(1, "e1")
    assert_gapless(fake, ["e1"])


def test_our_own_lost_write_is_not_taken_for_a_companion_conflict():
    fake = FakeDynamoDB(fates(DELAYED))
    once = {
        "Put": {
            "TableName": "ledger",
            "Item": {"trial_id": {"S": TRIAL}, "transaction_id": {"S": "t"}},
            "ConditionExpression": "attribute_not_exists(transaction_id)",
        }
    }
    assert journal(fake).append(TRIAL, "x", companions=[once]) == Appended(1, "e1")
    assert_gapless(fake, ["e1"])


def test_a_companion_gets_the_number_that_its_event_ends_up_with():
    fake = FakeDynamoDB(fates(OK, OK, CONFLICT))
    seen = []

    def companion(seq, event_id):
        seen.append((seq, event_id))
        row = {"trial_id": {"S": TRIAL}, "transaction_id": {"S": "t"}, "seq": {"N": str(seq)}}
        return {"Put": {"TableName": "ledger", "Item": row}}

    first = journal(fake)
    first.append(TRIAL, "x")
    first.append(TRIAL, "x")
    assert first.append(TRIAL, "x", companions=[companion]) == Appended(3, "e3")
    assert seen == [(3, "e3"), (3, "e3")]
    assert fake.items["ledger", TRIAL, "t"]["seq"] == {"N": "3"}


def test_reads_that_fail_are_repeated_too():
    fake = FakeDynamoDB(fates(LOST))
    fake.reads_fail = 2
    assert journal(fake).append(TRIAL, "x") == Appended(1, "e1")
    assert_gapless(fake, ["e1"])


def test_a_storm_without_end_is_bounded_and_says_why():
    pauses = []
    fake = FakeDynamoDB(lambda: CONFLICT)
    writer = Journal(fake, JOURNAL, "caller", new_id=lambda: "e", sleep=pauses.append)
    with pytest.raises(AppendExhausted) as refused:
        writer.append(TRIAL, "x")
    assert isinstance(refused.value.__cause__, ClientError)
    assert fake.transactions == MAX_TURNS == len(pauses)
    assert pauses[0] == 0
    assert all(0 <= pause <= 0.2 for pause in pauses)
    assert len(set(pauses)) > 10, "the pauses are not jittered"


@pytest.mark.parametrize(
    ("error", "repeated"),
    [
        (client_error("InternalServerError", 500), True),
        (client_error("TransactionInProgressException"), True),
        (client_error("ProvisionedThroughputExceededException"), True),
        (client_error("TransactionCanceledException", reasons=["ThrottlingError", "None"]), True),
        (client_error("TransactionCanceledException", reasons=["None", "ValidationError"]), False),
        (client_error("AccessDeniedException"), False),
        (client_error("ValidationException"), False),
        (client_error("IdempotentParameterMismatchException"), False),
    ],
    ids=lambda value: value.response["Error"]["Code"] if isinstance(value, ClientError) else str(value),
)
def test_which_errors_are_repeated(error, repeated):
    fake = FakeDynamoDB()
    send, errors = fake.transact_write_items, [error]

    def failing_once(**transaction):
        if errors:
            raise errors.pop()
        return send(**transaction)

    fake.transact_write_items = failing_once
    if repeated:
        assert journal(fake).append(TRIAL, "x") == Appended(1, "e1")
    else:
        with pytest.raises(ClientError):
            journal(fake).append(TRIAL, "x")
        assert fake.items == {}


# --- rivals ---


def append_all(writer, count, acknowledged):
    for _ in range(count):
        acknowledged.append(writer.append(TRIAL, "x"))


def test_rivals_in_threads_leave_no_gap_and_no_duplicate():
    fake = FakeDynamoDB()
    writers = [journal(fake, prefix=f"w{n}-") for n in range(4)]
    acknowledged = [[] for _ in writers]
    threads = [
        threading.Thread(target=append_all, args=(writer, 25, own))
        for writer, own in zip(writers, acknowledged, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everyone = [appended for own in acknowledged for appended in own]
    ids = assert_gapless(fake, [appended.event_id for appended in everyone])
    assert [ids[appended.seq - 1] for appended in everyone] == [appended.event_id for appended in everyone]
    assert all([a.seq for a in own] == sorted(a.seq for a in own) for own in acknowledged)
    assert len(everyone) == 100


@settings(max_examples=150, deadline=None)
@given(
    bad=st.lists(st.sampled_from(FATES), max_size=25),
    interrupts=st.lists(st.booleans(), max_size=25),
    appends=st.integers(1, 4),
    honours_tokens=st.booleans(),
)
def test_any_mix_of_fates_and_rivals_leaves_each_event_exactly_once(bad, interrupts, appends, honours_tokens):
    """A rival may append at every pause of ours; the numbers acknowledged are those stored."""
    fake = FakeDynamoDB(fates(*bad), honours_tokens)
    rival_ids, turns = [], iter(interrupts)

    def rival_at_pause(_):
        if next(turns, False):
            fake.fate, noisy = (lambda: OK), fake.fate
            rival_ids.append(journal(fake, prefix=f"rival{len(rival_ids)}-").append(TRIAL, "y").event_id)
            fake.fate = noisy

    ids = itertools.count(1)
    ours = Journal(
        fake, JOURNAL, "caller", new_id=lambda: f"ours{next(ids)}", now_ms=lambda: 1, sleep=rival_at_pause
    )
    acknowledged = [ours.append(TRIAL, "x") for _ in range(appends)]
    stored_ids = assert_gapless(fake, [a.event_id for a in acknowledged] + rival_ids)
    assert [stored_ids[a.seq - 1] for a in acknowledged] == [a.event_id for a in acknowledged]


def test_both_clauses_guard_every_place():
    sent = []
    fake = FakeDynamoDB()
    apply = fake.transact_write_items
    fake.transact_write_items = lambda **transaction: (sent.append(transaction), apply(**transaction))[1]
    writer = journal(fake)
    writer.append(TRIAL, "x")
    writer.append(TRIAL, "x")
    clauses = [
        [write["ConditionExpression"] for item in transaction["TransactItems"] for write in item.values()]
        for transaction in sent
    ]
    assert clauses == [
        ["attribute_not_exists(n)", "attribute_not_exists(entry)"],
        ["n = :k", "attribute_not_exists(entry)"],
    ]
    tokens = [transaction["ClientRequestToken"] for transaction in sent]
    assert len(set(tokens)) == 2 and all(len(token) == 36 for token in tokens)
