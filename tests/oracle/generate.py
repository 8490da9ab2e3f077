"""Random trials and random damage from a random.Random: a seed is all it takes to see one again."""

from __future__ import annotations

import copy
import random

from tests.oracle.builder import Trial, control, package_with, probe, treatment
from tests.oracle.frozen import CONTROL, TREATMENT, Package, encode, reindex

GARBAGE = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**53 - 1,
    "",
    "0",
    "1",
    "x",
    "SUCCEEDED",
    "UNKNOWN",
    [],
    {},
    [1],
    {"S": "x"},
    {"N": "7"},
)


def random_package(rng: random.Random) -> Package:
    package = Package()
    package.add(probe(package))
    return package.add(random_trial(rng, package))


def random_trial(rng: random.Random, package: Package) -> Trial:
    """A trial that may go well or wrong at each step; about a third of them could pass."""
    trial = Trial(package, "t", rng.choice((CONTROL, TREATMENT)), rng.choice(("conventional", "durable")))
    steady = rng.random() < 0.5  # a trial without accidents, except what comes after
    trial.open()
    if not steady and rng.random() < 0.05:
        trial.event("runner", "message_send_started")
    commits, response = [], None
    attempts = 2 if trial.scenario == TREATMENT else 1
    if not steady:
        attempts = rng.choice((0, 1, 1, 2, 2, 3))
    for attempt in range(1, attempts + 1):
        response = one_attempt(rng, trial, attempt, commits, steady) or response
    if response is not None and (steady or rng.random() < 0.9):
        trial.finish(response)
        if response["type"] == "attempt_failed" and rng.random() < 0.9:
            trial.state["reason"] = "PROVIDER_REFUSED"
    if steady or rng.random() < 0.95:
        trial.close()
    return trial


def one_attempt(rng, trial, attempt, commits, steady):
    """Dispatch, perhaps commit, and one of the outcomes; returns the event that may finish the request."""
    dispatch = trial.dispatch(attempt, receive_count=attempt if trial.variant == "conventional" else 1)
    first_of_treatment = trial.scenario == TREATMENT and attempt == 1
    if not steady and rng.random() < 0.1:
        return refuse(trial, dispatch, rng.choice(("INVALID_REQUEST", "INVALID_REQUEST", "TEAPOT")))
    if not steady and rng.random() < 0.05:
        return None  # the caller was killed and the provider never said a word
    if commits and rng.random() < 0.6:
        commit = commits[0]  # a provider with a key answers from its first commit
    else:
        barrier = "HELD" if first_of_treatment else "NONE" if trial.scenario == CONTROL else "SPENT"
        commit = trial.commit(dispatch, barrier)
        commits.append(commit)
    outcome = "timeout" if first_of_treatment else "answer"
    if not steady:
        outcome = rng.choice((outcome, outcome, outcome, "timeout", "answer", "unknown", "killed"))
    if outcome == "answer":
        return trial.answer(dispatch, commit)
    if outcome == "timeout":
        late(rng, trial, dispatch, commit, steady)
    elif outcome == "unknown":
        trial.event("provider", "response_sent", attempt=attempt, caused_by=commit["event_id"])
        trial.event("caller", "outcome_unknown", attempt=attempt, caused_by=dispatch["event_id"])
        trial.state["effect_knowledge"] = "UNKNOWN"
    return None


def late(rng, trial, dispatch, commit, steady):
    timeout = trial.timeout(dispatch, 3001 if steady or rng.random() < 0.9 else 2999)
    held = trial.barrier and trial.barrier["state"] == "HELD"
    if held and (steady or rng.random() < 0.85):
        trial.release(timeout)
    elif held:
        trial.event("provider", "barrier_expired", attempt=dispatch["attempt"], caused_by=commit["event_id"])
        trial.barrier["state"] = "EXPIRED"
    else:
        trial.event("provider", "response_sent", attempt=dispatch["attempt"], caused_by=commit["event_id"])


def refuse(trial, dispatch, code):
    refusal = trial.event("caller", "attempt_failed", caused_by=dispatch["event_id"], detail={"code": code})
    trial.state.setdefault("effect_knowledge", "KNOWN" if code == "INVALID_REQUEST" else "UNKNOWN")
    return refusal if code == "INVALID_REQUEST" else None


# -- accidents of the freezer and of the world, whole documents at a time ---------------------------
def rows(package):
    return [line["response"] for line in package.docs["trials/t/ledger.jsonl"]]


def accident(rng: random.Random, package: Package) -> None:
    """One well-formed change of meaning."""
    docs = package.docs
    trial, queues = docs["trials/t/trial.json"], docs["trials/t/queues.jsonl"]
    ledger = docs["trials/t/ledger.jsonl"]
    rng.choice(
        (
            lambda: ledger.pop(),
            lambda: rng.choice(ledger)["request"].update(ConsistentRead=False),
            lambda: rng.choice(ledger).update(marker_out={"k": {"S": "x"}}),
            lambda: queues.pop(),
            lambda: rng.choice(queues)["response"]["Attributes"].update(ApproximateNumberOfMessages="1"),
            lambda: [
                q["response"]["Attributes"].update(ApproximateNumberOfMessages="1")
                for q in queues
                if q["read"] == "queue_dlq"
            ],
            lambda: trial["driver"].update(
                {rng.choice(("sends", "source_queue_receives", "total_max_attempts")): 2}
            ),
            lambda: trial.update(ended_because="trial_limit"),
            lambda: trial["request"].update(approved_minor=9_000),
            lambda: docs["environment.json"].update(grade="aws"),
            lambda: docs["template.json"]["Resources"]["ConventionalQueue"]["Properties"].update(
                VisibilityTimeout=1
            ),
            lambda: docs.pop("trials/t/queues.jsonl"),
            lambda: change_rows(rng, package),
            lambda: change_rows(rng, package),
            lambda: change_durable(rng, docs),
        )
    )()


def change_rows(rng, package):
    """The same change in both snapshots, or in one of them."""
    responses = rows(package) if rng.random() < 0.7 else rows(package)[:1]
    name, value = rng.choice(
        (
            ("status", "PENDING"),
            ("status", "FAILED"),
            ("status", "MAYBE"),
            ("amount_minor", "9999"),
            ("currency", "USD"),
            ("refund_request_id", "other"),
            ("payment_id", "other"),
            ("attempt", "9"),
            ("seq", "1"),
            ("amount_minor", "0"),
        )
    )
    for response in responses:
        for item in response["Items"][:1]:
            (kind,) = item[name]
            item[name] = {kind: value}
    if rng.random() < 0.3:
        for response in responses:
            response["Items"] = response["Items"] + [
                {**item, "transaction_id": {"S": "copy"}} for item in response["Items"][:1]
            ]
            response["Count"] = len(response["Items"])


def change_durable(rng, docs):
    lines = docs.get("trials/t/durable.jsonl")
    if lines:
        rng.choice(
            (
                lambda: lines.pop(rng.randrange(len(lines))),
                lambda: lines[-1]["response"]["Events"].pop(),
                lambda: lines[1]["response"]["DurableExecutions"].append(
                    {"DurableExecutionArn": "x", "Status": "RUNNING"}
                ),
                lambda: lines[1]["response"]["DurableExecutions"].append(
                    {"DurableExecutionArn": "x", "Status": "FAILED"}
                ),
                lambda: lines[4]["response"].update(Status="PAUSED"),
                lambda: lines[4]["response"].update(InputPayload='{"ping":true}'),
            )
        )()


# -- damage: any field, line, page or file -----------------------------------------------------------
def damage(rng: random.Random, docs: dict, spare=(), removal_only=False) -> str:
    """Delete or garble one thing anywhere in the documents; returns what, for a failure's message."""
    path = rng.choice(sorted(set(docs) - set(spare)))
    if rng.random() < 0.05:
        del docs[path]
        return f"deleted {path}"
    if isinstance(docs[path], bytes):
        docs[path] = docs[path][: rng.randrange(len(docs[path]))]
        return f"truncated {path}"
    docs[path] = copy.deepcopy(docs[path])
    parent, key = rng.choice(list(places(docs[path])) or [(docs, path)])
    if removal_only or rng.random() < 0.5:
        del parent[key]
        return f"deleted {key} in {path}"
    parent[key] = rng.choice(GARBAGE)
    return f"{key} in {path} became {parent[key]!r}"


def places(node):
    """Every (container, key) below a document."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in list(children):
        yield node, key
        yield from places(child)


def bytes_damage(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """Delete, cut or flip bytes of one file."""
    path = rng.choice(sorted(path for path in files if path != "index.json"))
    data, where = files[path], rng.randrange(max(len(files[path]), 1))
    damaged = rng.choice(
        (
            data[:where],
            data[:where] + b"\xff" + data[where + 1 :],
            data[where:],
            data[:where] + b"\n" + data[where:],
            data + data,
            data.replace(b"true", b"false", 1),
            data.replace(b"0", b"1", 1),
            b"",
        )
    )
    return {**files, path: damaged}


def small_good_packages():
    """(name, documents) of packages that pass or fail when they are whole."""
    stories = {
        "control": control,
        "control durable": lambda p: control(p, "durable"),
        "treatment": treatment,
        "treatment durable": lambda p: treatment(p, "durable"),
        "idempotent": lambda p: treatment(p, idempotent=True),
        "idempotent durable": lambda p: treatment(p, "durable", idempotent=True),
    }
    return {name: package_with(story).docs for name, story in stories.items()}


def render(docs: dict) -> dict[str, bytes]:
    """The documents as files under a true index."""
    return reindex({path: encode(document) for path, document in docs.items()})
