"""Q01-Q03, Q06: the last N samples of source queue and DLQ are zero. One zero sample is not emptiness (D12).

Which samples are the last is read from where they stand, so they must stand in time order. That is one
reader's one clock, not the clocks of different functions (CASES D31); a second of its own is forgiven.

Least evidence: whole queue samples and the protocol, which says how many make a settle window.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import COMPLETE, Rule, is_full

TOLERATED_MS = 1_000


def check(trial):
    window = max(trial.protocol["quiescence"]["samples"], 2)
    counts = {"source": len(trial.queues.source), "dlq": len(trial.queues.dlq)}
    if counts["source"] != counts["dlq"]:
        yield breach("Q01", "the two queues were not sampled equally often", None, **counts)
    for name, samples in (("source", trial.queues.source), ("dlq", trial.queues.dlq)):
        for before, after in zip(samples, samples[1:], strict=False):
            if after.record.at_ms < before.record.at_ms - TOLERATED_MS:
                yield breach("Q06", f"a sample of the {name} queue is before the one above it", after.where)
                break
    for code, name, samples in (("Q02", "source", trial.queues.source), ("Q03", "dlq", trial.queues.dlq)):
        if len(samples) < window:
            yield breach(
                "Q01",
                f"expected at least {window} samples of the {name} queue, found {len(samples)}",
                None,
                queue=name,
                found=len(samples),
            )
            continue
        for sample in samples[-window:]:
            if not sample.empty:
                yield breach(
                    code,
                    f"the {name} queue was not empty in the settle window",
                    sample.where,
                    counts=list(sample.counts),
                )
                break


RULE = Rule("queues_settled", COMPLETE, frozenset({"queues", "protocol"}), check, is_full)
