"""V07: the driver sent once and touched nothing (CASES D12, D15). Least evidence: trial.json and a whole
journal.
"""

from __future__ import annotations

from oracle.finding import breach
from oracle.rules.base import VALIDITY, Rule


def check(trial):
    driver, where = trial.document["driver"], trial.where / "driver"
    starts = trial.journal.of_type("probe_invoked" if trial.claims_probe else "message_send_started")
    # The probe sends no message; its one call is the probe_invoked event.
    sends = (0, 1) if trial.claims_probe else (1,)
    if (
        driver["sends"] not in sends
        or driver["total_max_attempts"] != 1
        or driver["source_queue_receives"] != 0
    ):
        yield breach(
            "V07",
            f"the driver says sends {driver['sends']}, attempts {driver['total_max_attempts']}, "
            f"receives {driver['source_queue_receives']}",
            where,
        )
    if len(starts) != 1:
        yield breach(
            "V07", f"the driver started {len(starts)} times", None, seqs=[event.seq for event in starts]
        )


RULE = Rule("driver_clean", VALIDITY, frozenset({"document", "journal"}), check)
