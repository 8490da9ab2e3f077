"""The package's own documents: protocol, environment, template, run (section 3, the K codes)."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass, field

from oracle.finding import Finding, Where, breach
from oracle.shape import problem
from oracle.strict_json import Malformed, load_document
from oracle.template import check_template

REQUIRED = ("protocol.toml", "protocol.json", "environment.json", "template.json", "run.json")
# A client of the aws target may be pointed at an emulator; what it makes is emulated then.
GRADES = {"local": ("emulated",), "aws": ("aws", "emulated")}
REQUEST = {
    "refund_request_id": str,
    "payment_id": str,
    "captured_minor": int,
    "approved_minor": int,
    "currency": str,
}
_QUEUE = {"batch_size": int, "visibility_timeout_s": int, "max_receive_count": int}
PROTOCOL = {
    "study": {"name": str, "title": str, "canonical": bool},
    "refund": REQUEST,
    "caller": {"deadline_ms": int, "total_max_attempts": int, "function_timeout_s": int},
    "provider": {"function_timeout_s": int, "hold_budget_s": int, "barrier_poll_ms": int},
    "release": {"function_timeout_s": int, "max_retries": int},
    "variants": {
        "conventional": _QUEUE,
        "durable": {
            **_QUEUE,
            "execution_timeout_s": int,
            "retention_days": int,
            "step_name": str,
            "step_attempts": int,
            "step_retry_delay_s": int,
            "step_jitter": str,
            "step_semantics": str,
        },
    },
    "quiescence": {"samples": int, "interval_s": int, "trial_limit_s": int},
    "order": [{"scenario": str, "variant": str}],
}
RUN = {
    "run_id": str,
    "protocol": str,
    "protocol_sha256": str,
    "target": str,
    "grade": str,
    "stage": str,
    "sequential": bool,
    "scenarios": [str],
    "started_at_ms": int,
    "ended_at_ms": int,
    "probe": (str, None),
    "planned?": [{"scenario": str, "variant": str}],
    "trials": [{"trial_id": str, "scenario": str, "variant": str}],
}
# What a read must name to be about this stack; the oracle never guesses one of them.
OUTPUTS = dict.fromkeys(
    (
        "LedgerTable",
        "JournalTable",
        "BarrierTable",
        "DurableFunction",
        "ConventionalQueueUrl",
        "ConventionalDlqUrl",
        "DurableQueueUrl",
        "DurableDlqUrl",
        "ProtocolName",
        "ProtocolSha256",
    ),
    str,
)
ENVIRONMENT = {
    "target": str,
    "grade": str,
    "region": str,
    "account": str,
    "started_at_ms": int,
    "code": {"commit": (str, None), "dirty": (bool, None)},
    "assets": list,
    "versions": dict,
    "functions": dict,
    "stack": {"name": str, "status": str, "outputs": OUTPUTS},
}


@dataclass(slots=True)
class Documents:
    """Each document, or None when it is missing or malformed: no rule sees half a document."""

    protocol: dict | None = None
    environment: dict | None = None
    template: dict | None = None
    run: dict | None = None
    findings: list[Finding] = field(default_factory=list)
    cells: dict[str, dict] = field(default_factory=dict)  # run.json's trials by id
    checked_templates: dict[str, list[Finding]] = field(default_factory=dict)

    def template_findings(self, variant: str) -> list[Finding]:
        """V04 and V05 for a variant; the template is one for all trials, so it is looked through once."""
        if variant not in self.checked_templates:
            self.checked_templates[variant] = check_template(self.template, self.protocol, variant)
        return self.checked_templates[variant]

    @property
    def outputs(self) -> dict:
        return self.environment["stack"]["outputs"] if self.environment else {}


def decode_documents(files: dict[str, bytes]) -> Documents:
    """From the bytes of the top-level files (those that exist and were not broken)."""
    documents = Documents()
    found = documents.findings
    for path in REQUIRED:
        if path not in files:
            found.append(breach("K01", f"{path} is missing", Where(path)))
    loaded = {path: _load(path, data, found) for path, data in files.items() if path.endswith(".json")}
    documents.run = _shaped(loaded, "run.json", RUN, "K02", found)
    if documents.run is not None:
        documents.cells = {trial["trial_id"]: trial for trial in documents.run["trials"]}
    documents.environment = _shaped(loaded, "environment.json", ENVIRONMENT, "K05", found)
    documents.template = _shaped(loaded, "template.json", {"Resources": dict}, "K09", found)
    protocol = _shaped(loaded, "protocol.json", PROTOCOL, "K03", found)
    source = files.get("protocol.toml")
    if protocol is not None and source is not None:
        if _same_protocol(protocol, source):
            documents.protocol = protocol
            found.extend(_protocol_named(documents, hashlib.sha256(source).hexdigest()))
        else:
            found.append(breach("K03", "protocol.json is not protocol.toml", Where("protocol.json")))
    found.extend(_run_agrees(documents))
    return documents


def _load(path, data, found):
    try:
        return load_document(data)
    except Malformed as bad:
        found.append(breach(bad.code, f"{path}: {bad.message}", Where(path)))
        return None


def _shaped(loaded, path, shape, code, found):
    document = loaded.get(path)
    if document is None:
        return None
    wrong = problem(document, shape)
    if wrong is None:
        return document
    found.append(breach(code, wrong[1], Where(path, wrong[0])))
    return None


def _same_protocol(protocol, source: bytes) -> bool:
    try:
        parsed = tomllib.loads(source.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return False
    return exactly(parsed, protocol)


def exactly(left, right) -> bool:
    """Equality that does not take 1 for true or 1.0 for 1."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(exactly(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(exactly, left, right))
    return left == right


def _protocol_named(documents: Documents, digest: str):
    name, run, outputs = documents.protocol["study"]["name"], documents.run, documents.outputs
    claims = [
        ("run.json", "/protocol", run and run["protocol"], name),
        ("run.json", "/protocol_sha256", run and run["protocol_sha256"], digest),
    ]
    if documents.environment:
        claims += [
            ("environment.json", "/stack/outputs/ProtocolName", outputs.get("ProtocolName"), name),
            ("environment.json", "/stack/outputs/ProtocolSha256", outputs.get("ProtocolSha256"), digest),
        ]
    for path, pointer, found, expected in claims:
        if found is not None and found != expected or found is None and path != "run.json":
            yield breach("K04", f"expected {expected}, found {found}", Where(path, pointer))


def _run_agrees(documents: Documents):
    run, environment = documents.run, documents.environment
    if environment and environment["grade"] not in GRADES.get(environment["target"], ()):
        yield breach(
            "K05",
            f"target {environment['target']} cannot have grade {environment['grade']}",
            Where("environment.json", "/grade"),
        )
    elif (
        run and environment and (run["target"], run["grade"]) != (environment["target"], environment["grade"])
    ):
        yield breach(
            "K05", "run.json and environment.json disagree on target or grade", Where("run.json", "/target")
        )
    if run:
        ids = [trial["trial_id"] for trial in run["trials"]]
        if not (ids or run["stage"] == "probe") or len(set(ids)) != len(ids) or run["probe"] in ids:
            yield breach(
                "K06", f"expected trials, each once, found {len(ids)} entries", Where("run.json", "/trials")
            )
        elif run["stage"] != "probe" and _not_run(run):
            sentence = f"no trial was run of {', '.join(_not_run(run))}"
            yield breach("K06", sentence, Where("run.json", "/trials"))


def _not_run(run: dict) -> list[str]:
    """What the run says that it is of, and has no trial of."""
    ran = {(trial["scenario"], trial["variant"]) for trial in run["trials"]}
    planned = [(cell["scenario"], cell["variant"]) for cell in run.get("planned", [])]
    left_out = [scenario for scenario in run["scenarios"] if scenario not in {cell[0] for cell in ran}]
    return sorted({*left_out, *("/".join(cell) for cell in planned if cell not in ran)})
