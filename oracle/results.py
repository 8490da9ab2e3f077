"""results.json: published values, each cited by file, digest and pointer, and a check of every citation
(section 13).
"""

from __future__ import annotations

import json
import re

from oracle.integrity import read_checked
from oracle.judge import Report
from oracle.shape import Shape, problem
from oracle.strict_json import Malformed, canonical, load_document, load_lines, unique
from oracle.trial import Trial

FORMAT = "suc-results"
CITED = (
    "trial_id",
    "scenario",
    "variant",
    "verdict",
    "validity",
    "ledger_transactions",
    "refunded_minor",
    "currency",
    "processing",
    "effect_knowledge",
    "correct_completion",
)
_SHAPE = Shape(
    {
        "format": str,
        "version": int,
        "package": Shape({"id": str}),
        "verdict": Shape({"verdict": str, "trials": list}),
        "values": [Shape({"name": str, "value": object, "path": str, "sha256": str, "pointer": str})],
    }
)
_POSITION = re.compile(r"(0|[1-9][0-9]{0,8})\Z")
_MISSING = object()


def verdict_section(report: Report) -> dict:
    trials = [{name: getattr(trial, name) for name in CITED} for trial in report.trials]
    return {"verdict": report.verdict, "trials": trials}


class Citer:
    """Collects citations while the judge goes by; `see` is its keep."""

    def __init__(self):
        self.values: list[dict] = []

    def see(self, trial: Trial, _result) -> None:
        name = trial.trial_id
        for effect in trial.ledger.effects():
            place = effect.where / "amount_minor" / "N"
            self._cite(f"{name}.{effect.id}.amount_minor", str(effect.row.get("amount_minor")), place)
        if trial.ledger.snapshots and trial.ledger.snapshots[-1].pages == 1:
            last = trial.ledger.snapshots[-1]
            self._cite(f"{name}.ledger_items", len(last.rows), last.where / "response" / "Count")
        for event in trial.journal.of_type("caller_timeout_recorded", "response_received"):
            place = event.where / "elapsed_ms" / "N"
            self._cite(f"{name}.{event.type}.{event.seq}.elapsed_ms", str(event.row.get("elapsed_ms")), place)

    def _cite(self, name, value, where) -> None:
        self.values.append({"name": name, "value": value, **where.as_json()})

    def document(self, report: Report) -> dict:
        refund = report.documents.protocol["refund"] if report.documents.protocol else {}
        approved = [
            {
                "name": f"protocol.{key}",
                "value": refund[key],
                "path": "protocol.json",
                "pointer": f"/refund/{key}",
            }
            for key in ("approved_minor", "captured_minor", "currency")
            if key in refund
        ]
        values = [
            {**value, "sha256": report.files[value["path"]]["sha256"]} for value in approved + self.values
        ]
        return {
            "format": FORMAT,
            "version": 1,
            "package": {"id": report.identity},
            "verdict": verdict_section(report),
            "values": values,
        }


def load_results(data: bytes) -> dict:
    """The document, strict in everything but its lines; Malformed says why not."""

    try:
        document = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
        document = load_document((canonical(document) + "\n").encode("utf-8"))
    except (UnicodeError, ValueError, RecursionError) as error:
        raise Malformed("J03", f"not strict JSON: {error}") from None
    wrong = _SHAPE.problem(document)
    if wrong is not None:
        raise Malformed("J03", f"{wrong[0] or 'the document'}: {wrong[1]}")
    if (document["format"], document["version"]) != (FORMAT, 1):
        raise Malformed(
            "J03", f"expected {FORMAT} version 1, found {document['format']} {document['version']}"
        )
    return document


def check(document: dict, report: Report, source) -> list[str]:
    """Everything the document says and the package does not; empty when all of it holds."""
    wrong = []
    if document["package"]["id"] != report.identity:
        wrong.append(f"package: expected {report.identity}, found {document['package']['id']}")
    if report.integrity:
        return [*wrong, "the package's integrity is broken"]
    if canonical(document["verdict"]) != canonical(verdict_section(report)):
        wrong.append(f"verdict: expected {canonical(verdict_section(report))}")
    if not document["values"]:
        wrong.append("values: there is no cited value, so nothing was checked")
    for cited in document["values"]:
        sentence = _check_value(cited, report.files, source)
        if sentence is not None:
            wrong.append(f"{cited['name']}: {sentence}")
    return wrong


def _check_value(cited: dict, files: dict, source) -> str | None:
    entry = files.get(cited["path"])
    if entry is None or entry["sha256"] != cited["sha256"]:
        return f"{cited['path']} with that digest is not in the index"
    data, broken = read_checked(source, entry)
    found = _MISSING if broken else resolve(cited["path"], data, cited["pointer"])
    if found is _MISSING:
        return f"nothing at {cited['path']}{cited['pointer']}"
    if canonical(found) != canonical(cited["value"]):
        return f"expected {canonical(found)[:200]}, found {canonical(cited['value'])[:200]}"
    return None


def resolve(path: str, data: bytes, pointer: str):
    """The value at a pointer, whose first step in a .jsonl file is a line number from 1."""
    if problem(pointer, str) or (pointer and not pointer.startswith("/")):
        return _MISSING
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    try:
        if path.endswith(".jsonl"):
            node = {str(number): value for number, value in load_lines(data)}
        else:
            node = load_document(data)
        for step in steps:
            node = node[int(step)] if isinstance(node, list) and _POSITION.match(step) else node[step]
    except (Malformed, KeyError, IndexError, ValueError, TypeError):
        return _MISSING
    return _MISSING if isinstance(node, Malformed) else node
