"""The close-out of a study, written from its runs: what is proven, what is attested, what is left out.

The same runs give the same bytes: no clock, no path and no order of this machine gets in, and every verdict
is the oracle's, asked again over the package's bytes.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner.cost.estimate import usd
from runner.money import money
from runner.protocol import Protocol
from runner.runs.history import Past
from runner.study.stages import CANONICAL, STAGES

# How a close-out is recognised, so that nothing else is overwritten by one.
GENERATED = "Generated from the runs"

Judge = Callable[[Path], dict[str, Any]]
GRADES = ("aws", "emulated")

PROVEN = """\
From a package's bytes alone, with `python -m oracle judge PACKAGE` or with `tar`, `jq` and `shasum`:

- that not one byte of the package has changed since its identity was computed;
- for each trial, how many successful transactions the ledger held, of what amount, and therefore the verdict;
- by sequence numbers, without any clock: that the commit came before the timeout, the timeout before the
  release, and that each retry came after them;
- that every page of every read that the verdict needs is there;
- that the deployed template had the numbers of the protocol, and that the driver sent one message;
- which package the stage stood on and which registration it ran under: `run.json` holds their digests, so
  neither can have been written after the package was frozen."""

ATTESTED = """\
By whoever ran it, and no byte can show it:

- that the reads were made on the target and of the grade that the package names;
- wall-clock times, and durations between hosts;
- that the list of runs below is whole: it is every folder under `runs/`, and a folder can be removed by hand;
- that no evidence existed before the registration. Without a time-stamp the registration's time is this
  machine's word; with one, a third party says that the registration existed by then, and still nobody says
  that no trial was run earlier and thrown away;
- what the functions say of their own SDK versions and configuration."""

LIMITS = """\
- Emulated packages show what handlers, template and judge do; the services under them are emulators.
- One payment, one amount, one fault: the study asks whether a second effect is possible, not how often.
- Trials share one stack. Each has its own keys in every table, and queues are at rest before it begins.
- The lease that keeps two runners apart compares wall clocks of their hosts."""


@dataclass(frozen=True)
class Judged:
    """A run that published, with what the oracle says of it now."""

    run: Past
    verdict: dict[str, Any]
    record: dict[str, Any]
    code: dict[str, Any]
    cost: dict[str, Any]


def render(protocol: Protocol, runs: list[Past], registration: list[str], judge: Judge) -> str:
    """Return the close-out as Markdown. `registration` are lines about it, from whoever checked it."""
    # A run whose folder no longer says its protocol may be this study's: it is not left out.
    own = [run for run in runs if run.protocol in (protocol.name, None)]
    judged = [_judged(run, judge(run.package)) for run in own if run.package]
    sections = (
        ("", [f"# {protocol.title}", _heading(protocol)]),
        ("Result", _result(protocol, judged)),
        ("What a reader can prove from bytes", [PROVEN]),
        ("What is only attested", [ATTESTED]),
        ("Registration", registration),
        ("Every run", _runs(own)),
        ("Deviations", list(_deviations(protocol, judged)) or ["None that the packages show."]),
        ("Cost", _cost(judged)),
        ("Limits", [LIMITS]),
    )
    blocks = [line for title, lines in sections for line in ([f"## {title}"] if title else []) + lines]
    return "\n\n".join(blocks) + "\n"


def _heading(protocol: Protocol) -> str:
    return (
        f"{GENERATED} of protocol `{protocol.name}` (SHA-256 `{protocol.sha256}`) by "
        f"`python -m runner closeout --protocol {protocol.name}`. It is not edited by hand."
    )


def _judged(run: Past, verdict: dict[str, Any]) -> Judged:
    def document(name: str) -> dict[str, Any]:
        path = run.package / name
        # Bytes that have changed since are no word of the run.
        whole = verdict["integrity"]["ok"] and path.is_file()
        return json.loads(path.read_text(encoding="utf-8")) if whole else {}

    code = document("environment.json").get("code", {"commit": None, "dirty": None})
    return Judged(run, verdict, document("run.json"), code, document("cost.json"))


def _result(protocol: Protocol, judged: list[Judged]) -> list[str]:
    """One table: the newest usable canonical package of each grade, or an open row for each cell."""
    rows = []
    for grade in GRADES:
        chosen = [j for j in judged if (j.run.grade, j.run.stage, j.run.excluded) == (grade, CANONICAL, None)]
        trials = {(t["scenario"], t["variant"]): t for t in chosen[-1].verdict["trials"]} if chosen else {}
        for cell in protocol.order:
            trial = trials.get((cell.scenario, cell.variant))
            rows.append([grade, cell.scenario, cell.variant, *_cells_of(trial), _short(chosen)])
    heading = ["Grade", "Scenario", "Variant", "Ledger transactions", "Refunded", "Verdict", "Validity"]
    lines = [_table([*heading, "Correct completion", "Package"], rows)]
    for grade in GRADES:
        if not any(row[0] == grade and row[5] != "open" for row in rows):
            lines.append(
                f"**Open:** there is no usable canonical package of grade `{grade}`; its rows are no results."
            )
    return lines


def _cells_of(trial: dict[str, Any] | None) -> list[str]:
    if trial is None:
        return ["open"] * 5
    completion = trial["correct_completion"]
    return [
        str(trial["ledger_transactions"]),
        money(trial["refunded_minor"], trial["currency"]),
        trial["verdict"],
        trial["validity"],
        "?" if completion is None else "yes" if completion else "no",
    ]


def _short(chosen: list[Judged]) -> str:
    return f"`{chosen[-1].run.package_id[:12]}`" if chosen else "open"


def _runs(runs: list[Past]) -> list[str]:
    rows = [
        [
            run.run_id,
            run.stage or "?",
            run.grade or "?",
            datetime.fromtimestamp(run.started_at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S"),
            run.state,
            " ".join(trial["verdict"] for trial in run.result.get("trials", [])) or "-",
            f"`{run.package_id}`" if run.package_id else "-",
            run.excluded or "",
        ]
        for run in runs
    ]
    excluded = sum(run.excluded is not None for run in runs)
    told = f"{len(runs)} runs, {excluded} of them excluded, each with its reason."
    heading = ["Run", "Stage", "Grade", "Started (UTC)", "State", "Verdicts", "Package", "Excluded because"]
    return [told, _table(heading, rows)] if rows else ["There is no run of this protocol."]


def _deviations(protocol: Protocol, judged: list[Judged]) -> Iterator[str]:
    """Yield what differs from the study as designed, each with the packages it holds for."""
    if not protocol.canonical:
        yield "- The protocol is a rehearsal with short waits: nothing here may be published as the study."
    staged = [j for j in judged if j.run.stage in STAGES and j.run.excluded is None]
    cases = (
        ("emulated: the target was the local cloud", lambda j: j.run.grade == "emulated"),
        ("taken up by another process after the runner died", lambda j: j.run.resumed),
        ("run from a tree that differed from its commit", lambda j: j.code["dirty"]),
        ("run without a known commit", lambda j: j.code["commit"] is None),
        ("judged otherwise now than when it was frozen", _judged_otherwise),
    )
    for words, holds in cases:
        found = [f"`{j.run.package_id[:12]}` ({j.run.stage})" for j in staged if holds(j)]
        if found:
            yield f"- {words.capitalize()}: {', '.join(found)}."


def _judged_otherwise(judged: Judged) -> bool:
    keys = ("trial_id", "verdict", "validity")
    then, now = (
        [{key: trial[key] for key in keys} for trial in sorted(told["trials"], key=lambda t: t["trial_id"])]
        for told in (judged.run.result, judged.verdict)
    )
    return then != now


def _cost(judged: list[Judged]) -> list[str]:
    costed = [j for j in judged if j.cost]
    if not costed:
        return ["No package counts its usage."]
    emulated = sum(j.cost["estimate_micro_usd"] for j in costed if j.run.grade != "aws")
    real = sum(j.cost["estimate_micro_usd"] for j in costed if j.run.grade == "aws")
    prices = sorted({f"`{j.cost['prices']['file']}` of {j.cost['prices']['as_of']}" for j in costed})
    return [
        f"Runs on AWS: estimated at most {usd(real)}, `unverified` until a billing export is supplied. "
        "Emulated runs were charged US$ 0; "
        f"on AWS they would have cost at most {usd(emulated)}. Prices: {', '.join(prices)}."
    ]


def _table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
