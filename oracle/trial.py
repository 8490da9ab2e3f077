"""One trial's evidence, decoded: what the rules look at. Decoding never raises; it leaves findings."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from oracle import reads
from oracle.durable import Durable, decode_durable
from oracle.finding import Finding, Where, breach
from oracle.journal import DEFINITE_CODES, OUTCOMES, Event, Journal, decode_journal
from oracle.ledger import Ledger, decode_ledger
from oracle.package import REQUEST, Documents
from oracle.queues import Queues, decode_queues
from oracle.shape import Shape
from oracle.strict_json import Malformed, load_document, load_lines, unique

CONTROL, TREATMENT = "CONTROL", "COMMIT_THEN_TIMEOUT"
_MESSAGE = Shape(
    {
        "message_id": str,
        "group_id": str,
        "deduplication_id": str,
        "body": str,
        "sequence_number": (str, None),
    }
)
SHAPE = Shape(
    {
        "trial_id": str,
        "run_id": str,
        "kind": str,
        "scenario": str,
        "variant": str,
        "request": Shape(REQUEST),
        "armed": bool,
        "message": (None, _MESSAGE),
        "queues": (None, Shape({"source": str, "dlq": str})),
        "started_at_ms": int,
        "ended_at_ms": int,
        "ended_because": str,
        "quiescence": Shape({"samples": int, "interval_s": int}),
        "driver": Shape({"total_max_attempts": int, "sends": int, "source_queue_receives": int}),
        "error": (str, None),
    }
)


@dataclass(slots=True)
class Trial:
    trial_id: str
    documents: Documents
    scenario: str | None = None
    variant: str | None = None
    is_probe: bool = False  # run.json and trial.json both say so: spared the invariant
    claims_probe: bool = (
        False  # its own word counts where run.json is silent: spared what a probe does not have
    )
    document: dict | None = None
    journal: Journal = field(default_factory=Journal)
    ledger: Ledger = field(default_factory=Ledger)
    queues: Queues = field(default_factory=Queues)
    durable: Durable = field(default_factory=Durable)
    findings: list[Finding] = field(default_factory=list)
    usable: set[str] = field(default_factory=set)

    @property
    def is_treatment(self) -> bool:
        return self.scenario == TREATMENT

    @property
    def where(self) -> Where:
        return Where(f"trials/{self.trial_id}/trial.json")

    @property
    def protocol(self) -> dict:
        return self.documents.protocol

    @property
    def request(self) -> dict | None:
        """The approved refund: the trial's and the protocol's word for it; None when they contradict each
        other.
        """
        own = self.document["request"] if self.document else None
        protocol = self.protocol["refund"] if self.protocol else None
        if own and protocol and any(own[name] != protocol[name] for name in REQUEST):
            return None
        return own or protocol

    def dispatches(self) -> list[Event]:
        return self.journal.of_type("dispatch_started")

    def outcomes(self, dispatch: Event) -> list[Event]:
        return self.journal.citing(dispatch, *OUTCOMES)

    def unknown_dispatches(self) -> list[Event]:
        """Dispatches without a definite outcome: a timeout, an unlisted failure, or nothing at all."""
        return [
            dispatch
            for dispatch in self.dispatches()
            if not any(_definite(outcome) for outcome in self.outcomes(dispatch))
        ]


def _definite(outcome: Event) -> bool:
    if outcome.type == "attempt_failed":
        return outcome.row["detail"]["code"] in DEFINITE_CODES
    return outcome.type == "response_received"


def decode_trial(trial_id: str, files: dict[str, bytes], documents: Documents) -> Trial:
    """From the bytes of the files in the trial's folder, by file name."""
    trial = Trial(trial_id, documents)
    trial.document = _document(trial, files.get("trial.json"))
    _identify(trial)
    records = {name: _records(trial, name, data) for name, data in files.items() if name.endswith(".jsonl")}
    outputs = documents.outputs
    trial.journal = decode_journal(records.get("journal.jsonl", []), trial_id, outputs)
    trial.ledger = decode_ledger(records.get("ledger.jsonl", []), trial_id, outputs.get("LedgerTable"))
    evidence = {"journal": trial.journal.findings, "ledger": trial.ledger.findings}
    if not trial.claims_probe:
        prefix, urls = (trial.variant or "").capitalize(), (trial.document or {}).get("queues") or {}
        trial.queues = decode_queues(
            records.get("queues.jsonl", []),
            {
                "source": outputs.get(f"{prefix}QueueUrl", urls.get("source")),
                "dlq": outputs.get(f"{prefix}DlqUrl", urls.get("dlq")),
            },
        )
        evidence["queues"] = trial.queues.findings
        if trial.variant == "durable":
            trial.durable = decode_durable(
                records.get("durable.jsonl", []), trial_id, outputs.get("DurableFunction")
            )
            evidence["durable"] = trial.durable.findings
    _take_stock(trial, files, evidence)
    return trial


def _document(trial: Trial, data: bytes | None) -> dict | None:
    if data is None:
        return None
    try:
        document = load_document(data)
    except Malformed as bad:
        trial.findings.append(breach(bad.code, bad.message, trial.where))
        return None
    problem = SHAPE.problem(document)
    if problem is None:
        return document
    trial.findings.append(breach("T02", problem[1], Where(trial.where.path, problem[0])))
    return None


def _identify(trial: Trial) -> None:
    """Which cell this is. Only a probe that run.json and trial.json both call one is spared the invariant."""
    run, document = trial.documents.run, trial.document or {}
    listed = trial.documents.cells.get(trial.trial_id)
    named_probe = bool(run) and run["probe"] == trial.trial_id and listed is None
    trial.claims_probe = document.get("kind") == "probe" and (named_probe or run is None)
    trial.is_probe = trial.claims_probe and named_probe
    cell = listed or document
    trial.scenario, trial.variant = cell.get("scenario"), cell.get("variant")
    if trial.document is None or run is None:
        return
    expected = {
        "trial_id": trial.trial_id,
        "run_id": run["run_id"],
        "kind": "probe" if named_probe else "trial",
        **(listed or {}),
    }
    for name, value in expected.items():
        if document[name] != value:
            trial.findings.append(
                breach("T03", f"expected {name} {value}, found {document[name]}", trial.where / name)
            )


def _records(trial: Trial, name: str, data: bytes) -> list[reads.Record]:
    path = f"trials/{trial.trial_id}/{name}"
    good = []
    for number, value in load_lines(data):
        if isinstance(value, Malformed):
            trial.findings.append(breach(value.code, value.message, Where(path) / number))
        else:
            good.append((number, value))
    records, findings = reads.decode(path, name.removesuffix(".jsonl"), good)
    trial.findings.extend(findings)
    return records


def _take_stock(trial: Trial, files: dict[str, bytes], evidence: dict[str, list[Finding]]) -> None:
    """Name what the rules may rely on; a damaged file proves no absence."""
    damaged = {found.witness.get("path", "").rsplit("/", 1)[-1] for found in trial.findings}
    for name, findings in evidence.items():
        path = f"{name}.jsonl"
        if path not in files:
            trial.findings.append(
                breach("T01", f"{path} is missing", Where(f"trials/{trial.trial_id}/{path}"))
            )
            continue
        trial.findings.extend(findings)
        if not findings and path not in damaged:
            trial.usable.add(name)
    trial.journal.whole = trial.journal.whole and "journal" in trial.usable
    if "trial.json" not in files:
        trial.findings.append(breach("T01", "trial.json is missing", trial.where))
    if trial.document is not None:
        trial.usable.add("document")
    if trial.request is not None:
        trial.usable.add("request")
    trial.usable |= {
        name
        for name in ("protocol", "environment", "template", "run")
        if getattr(trial.documents, name) is not None
    }


def sent_body(trial: Trial):
    """The message's body as parsed, or None."""
    message = trial.document and trial.document["message"]
    try:
        body = json.loads(message["body"], object_pairs_hook=unique) if message else None
    except (Malformed, ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None
