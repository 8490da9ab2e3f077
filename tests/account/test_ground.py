"""The ground: a probe says HOLDS, DIFFERS or UNKNOWN, on engines known to differ too."""

import json

import pytest

from runner.clock import SystemClock
from runner.doctor import ground, queues, tables
from runner.doctor.behaviours import Behaviour, Ground, Probe, Result, Told
from runner.doctor.ground_handlers import retry
from runner.doctor.ground_stack import CODE, FUNCTION_TIMEOUT_S, VISIBILITY_S, template
from tests.account.bench import Bench

LAYER = "arn:aws:lambda:us-east-1:123456789012:layer:SucStudy1-dependencies:1"


@pytest.fixture
def on_moto(bench: Bench) -> Ground:
    bench.client("dynamodb").create_table(
        TableName="ground",
        **{
            k: v
            for k, v in template(LAYER)["Resources"]["Table"]["Properties"].items()
            if k != "StreamSpecification"
        },
    )
    sqs = bench.client("sqs")
    dlq = sqs.create_queue(QueueName="dlq.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dlq, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 2})
    attributes = {
        "FifoQueue": "true",
        "VisibilityTimeout": str(VISIBILITY_S),
        "RedrivePolicy": redrive,
    }
    queue = sqs.create_queue(QueueName="q.fifo", Attributes=attributes)["QueueUrl"]
    return Ground(bench.client, {"Table": "ground", "Queue": queue, "Dlq": dlq}, SystemClock())


def shown(probes: tuple[Probe, ...], name: str, on: Ground) -> ground.Shown:
    (probe,) = [p for p in probes if name in [b.name for b in p.behaviours]]
    (found,) = [s for s in ground._shown(probe, on) if s.behaviour.name == name]
    return found


def test_on_an_engine_that_keeps_them_they_hold(on_moto):
    for name in ("conditional_put", "consistent_read"):
        assert shown(tables.PROBES, name, on_moto).result == Result.HOLDS


def test_a_token_that_is_ignored_differs(on_moto):
    # moto 5.2.5 applies a transaction again under the same token (EMULATORS).
    found = shown(tables.PROBES, "transaction_token", on_moto)
    assert (found.result, found.observed) == (Result.DIFFERS, "applied 3 times of 3 sent")


def test_a_condition_that_is_ignored_differs(on_moto, bench):
    put = bench.client("dynamodb").put_item

    def careless(_operation, request):
        request.pop("ConditionExpression", None)
        del bench.answers["PutItem"]
        put(**request)
        bench.answers["PutItem"] = careless
        return {}

    bench.answers["PutItem"] = careless
    found = shown(tables.PROBES, "conditional_put", on_moto)
    assert (found.result, found.observed) == (Result.DIFFERS, "refused none, kept second")


def test_a_stale_consistent_read_differs(on_moto, bench):
    bench.answers["GetItem"] = lambda *_: {"Item": {"n": {"N": "0"}}}
    found = shown(tables.PROBES, "consistent_read", on_moto)
    assert (found.result, found.observed) == (Result.DIFFERS, "19 of 20 consistent reads were stale")


def test_a_lost_append_differs(on_moto, bench):
    appended: list[dict] = []

    def lossy(_operation, request):
        put = request["TransactItems"][1]["Put"]["Item"]
        appended.append(put)
        return {}

    bench.answers["TransactWriteItems"] = lossy
    bench.answers["GetItem"] = lambda *_: {"Item": {"n": {"N": str(len(appended))}}}
    # Everything was acknowledged, and the last event is not there.
    counter = {"entry": {"S": "COUNTER"}, "n": {"N": "40"}}
    bench.answers["Query"] = lambda *_: {"Items": [counter, *appended[:-1]]}
    found = shown(tables.PROBES, "transactional_append", on_moto)
    assert found.result == Result.DIFFERS


@pytest.mark.slow
def test_the_queue_probes_on_an_engine_that_keeps_no_deduplication_after_deletion(on_moto):
    found = {s.behaviour.name: s.result for probe in queues.PROBES for s in ground._shown(probe, on_moto)}
    assert found == {
        "visibility_and_redelivery": Result.HOLDS,
        "receive_count": Result.HOLDS,
        "redrive_to_fifo_dlq": Result.HOLDS,
        "message_group_lock": Result.HOLDS,
        "send_deduplication": Result.HOLDS,
        "send_deduplication_after_delete": Result.DIFFERS,
    }


A, B = Behaviour("a", "as expected"), Behaviour("b", "as expected", relied_on=False)


def probe_of(*told: Told, error: Exception | None = None) -> Probe:
    def run(_ground):
        yield from told
        if error:
            raise error

    return Probe((A, B), run)


@pytest.mark.parametrize(
    ("probe", "results"),
    [
        (probe_of(Told(True, "x"), Told(True, "x")), ["HOLDS", "HOLDS"]),
        (probe_of(Told(False, "x"), Told(True, "x")), ["DIFFERS", "HOLDS"]),
        (probe_of(Told(True, "x"), error=ValueError("why")), ["HOLDS", "UNKNOWN"]),
        (probe_of(error=ValueError("why")), ["UNKNOWN", "UNKNOWN"]),
        (probe_of(Told(True, "x")), ["HOLDS", "UNKNOWN"]),
    ],
)
def test_what_a_probe_does_not_come_to_say_is_unknown(probe, results):
    found = ground._shown(probe, None)
    assert [str(s.result) for s in found] == results
    if "UNKNOWN" in results and probe.run(None):
        assert found[-1].observed in ("ValueError: why", "the probe ended early")


@pytest.mark.parametrize(
    ("results", "sound"),
    [
        (("HOLDS", "HOLDS"), True),
        (("HOLDS", "DIFFERS"), True),
        (("DIFFERS", "HOLDS"), False),
        (("HOLDS", "UNKNOWN"), False),
        (("UNKNOWN", "HOLDS"), False),
    ],
)
def test_what_no_trial_relies_on_may_differ_but_nothing_may_be_unknown(results, sound):
    told = [ground.Shown(b, Result(r), "").as_json() for b, r in zip((A, B), results, strict=True)]
    assert ground.sound({"behaviours": told}) is sound


def test_about_fifteen_behaviours_each_named_once():
    names = [b.name for story in ground.STORIES for probe in story for b in probe.behaviours]
    assert len(names) == len(set(names)) == 18


@pytest.fixture
def found(bench, monkeypatch, tmp_path):
    monkeypatch.setenv("SUC_STATE_DIR", str(tmp_path))
    shown = [ground.Shown(A, Result.HOLDS, "seen")]
    return ground.document(bench.account(), "SucStudy1-ground-1", {"engine": "1"}, shown, 1, 2)


def test_the_newest_look_is_found_for_the_same_target_and_versions(found):
    where = (found["target"], found["account"], found["region"])
    assert ground.load_latest(*where, {"engine": "1"}) is None
    ground.keep(found)
    assert ground.load_latest(*where, {"engine": "1"}) == found
    assert ground.load_latest(*where, {"engine": "2"}) is None
    assert ground.load_latest("local", "000000000000", "us-east-1", {"engine": "1"}) is None


def test_the_functions_code_fits_into_the_template():
    assert len(CODE.read_text()) < 4096
    assert len(json.dumps(template(LAYER)).encode()) < 51_200


def test_the_durable_function_tries_twice():
    assert [retry(None, n).should_retry for n in (1, 2)] == [True, False]


def test_the_throw_away_role_may_do_only_what_the_probes_need():
    role = template(LAYER)["Resources"]["Role"]["Properties"]
    (policy,) = role["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    actions = {action for statement in statements for action in statement["Action"]}
    assert not [action for action in actions if "*" in action or action == "logs:CreateLogGroup"]
    assert "*" not in [statement["Resource"] for statement in statements]


def test_the_queues_of_mappings_hide_a_message_as_long_as_the_function_may_run():
    resources = template(LAYER)["Resources"]
    assert resources["DurableQueue"]["Properties"]["VisibilityTimeout"] >= FUNCTION_TIMEOUT_S


@pytest.mark.slow
def test_the_throw_away_template_is_one_that_cloudformation_would_take(tmp_path):
    from cfnlint.api import ManualArgs, lint_file

    file = tmp_path / "ground.template.json"
    file.write_text(json.dumps(template(LAYER)))
    matches = lint_file(file, config=ManualArgs(regions=["us-east-1"]))
    assert [(m.rule.id, m.message) for m in matches] == []
