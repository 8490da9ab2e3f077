"""The rules, one file each, and the registry that runs them. A rule imports the decoded trial and findings
only.
"""

from __future__ import annotations

from oracle.rules import (
    authorised_effect,
    cell_of_protocol,
    clocks,
    control_untouched,
    dispatches_settled,
    driver_clean,
    effect_happened,
    executions_ended,
    ledger_agrees,
    ledger_settled,
    message_as_sent,
    one_effect,
    one_request_on_the_wire,
    outcomes_paired,
    queues_settled,
    request_as_approved,
    request_finished,
    retry_possible,
    template_numbers,
    treatment_exposed,
    trial_ended,
    within_captured,
)

# effect_happened is last: it may speak only when every rule before it has.
REGISTRY = tuple(
    module.RULE
    for module in (
        one_effect,
        within_captured,
        authorised_effect,
        ledger_settled,
        ledger_agrees,
        outcomes_paired,
        dispatches_settled,
        request_finished,
        queues_settled,
        executions_ended,
        trial_ended,
        cell_of_protocol,
        request_as_approved,
        message_as_sent,
        template_numbers,
        one_request_on_the_wire,
        driver_clean,
        control_untouched,
        treatment_exposed,
        retry_possible,
        clocks,
        effect_happened,
    )
)
