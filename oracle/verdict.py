"""From rules to a verdict: which ran, which held, and what that allows to be said.

fail           an intact row shows a violation, whatever else is missing
pass           every rule that applies ran and held, on a sound package, with exactly one effect
indeterminate  everything else: damage, absence, a rule skipped, a rule that raised
"""

from __future__ import annotations

from dataclasses import dataclass

from oracle.belief import belief, dead_lettered, effect_knowledge, processing
from oracle.finding import Finding
from oracle.rules import REGISTRY
from oracle.rules.base import COMPLETE, VALIDITY, Rule
from oracle.trial import Trial

PASS, FAIL, INDETERMINATE = "pass", "fail", "indeterminate"
VALID, INVALID = "valid", "invalid"
HELD, BROKEN, SKIPPED, ERROR, NOT_APPLICABLE = "held", "broken", "skipped", "error", "not applicable"


@dataclass(slots=True)
class TrialResult:
    trial_id: str
    scenario: str | None
    variant: str | None
    verdict: str
    validity: str
    ledger_transactions: int | None
    refunded_minor: int | None
    currency: str | None
    processing: str
    effect_knowledge: str
    belief: dict
    correct_completion: bool | None
    rules: dict[str, str]
    findings: list[Finding]

    def as_json(self) -> dict:
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "findings"}
        return {**fields, "findings": [finding.as_json() for finding in self.findings]}


def merge(verdicts) -> str:
    """fail over indeterminate over pass; nothing judged is not a pass."""
    verdicts = set(verdicts)
    if FAIL in verdicts:
        return FAIL
    return PASS if verdicts == {PASS} else INDETERMINATE


def judge_trial(trial: Trial, package_sound: bool) -> TrialResult:
    statuses, findings = {}, list(trial.findings)
    for rule in REGISTRY:
        if rule is REGISTRY[-1] and package_sound and _settled(trial, statuses, findings):
            trial.usable.add("settled")
        statuses[rule.name], found = _run(rule, trial)
        findings.extend(found)
    verdict = _verdict(trial, statuses, findings, package_sound)
    transactions, refunded, currency = _totals(trial)
    state = processing(trial)
    return TrialResult(
        trial.trial_id,
        trial.scenario,
        trial.variant,
        verdict,
        _validity(trial, statuses, findings, package_sound),
        transactions,
        refunded,
        currency,
        state,
        effect_knowledge(trial),
        belief(trial),
        None if verdict == INDETERMINATE else verdict == PASS and state == "SUCCEEDED",
        statuses,
        findings,
    )


def _run(rule: Rule, trial: Trial) -> tuple[str, list[Finding]]:
    try:
        if not rule.applies(trial):
            return NOT_APPLICABLE, []
        if not rule.needs <= trial.usable:
            return SKIPPED, []
        found = list(rule.check(trial))
    except Exception as error:  # noqa: BLE001 - whatever a rule does not survive is not known, never a pass
        return f"{ERROR}: {type(error).__name__}", []
    return BROKEN if any(finding.severity != "note" for finding in found) else HELD, found


def _settled(trial: Trial, statuses: dict[str, str], findings: list[Finding]) -> bool:
    """Whether the absence of an effect is a fact: all evidence whole, nothing moving, the driver clean.

    A dead-lettered request counts as ended; that alone lifts the demands of a finished request and an
    empty DLQ.
    """
    lifted = {"Q03", "Q04"} if dead_lettered(trial) and processing(trial) == "DEAD_LETTERED" else set()
    if any(
        finding.code not in lifted for finding in findings if finding.severity in ("incomplete", "unreadable")
    ):
        return False
    ran = [statuses[rule.name] for rule in REGISTRY if rule.group == COMPLETE]
    return (
        all(status in (HELD, BROKEN, NOT_APPLICABLE) for status in ran)
        and statuses.get("driver_clean") == HELD
    )


def _verdict(trial, statuses, findings, package_sound) -> str:
    violations = {finding.code for finding in findings if finding.severity == "violation"}
    if violations:
        return INDETERMINATE if "E01" in violations and _sent_twice(trial) else FAIL
    if not package_sound or any(finding.severity != "note" for finding in findings):
        return INDETERMINATE
    if trial.is_probe:
        return INDETERMINATE  # a probe is judged for its chain, never for the invariant
    ran = [status for status in statuses.values() if status != NOT_APPLICABLE]
    every_rule_held = len(statuses) == len(REGISTRY) and all(status == HELD for status in ran)
    exposed = HELD in (statuses.get("control_untouched"), statuses.get("treatment_exposed"))
    return PASS if every_rule_held and exposed and len(trial.ledger.effects()) == 1 else INDETERMINATE


def _sent_twice(trial: Trial) -> bool:
    """The journal itself shows that the driver sent more than once: then the second effect may be the
    driver's (D15). One event that was read twice is not two.
    """
    starts = trial.journal.of_type("message_send_started")
    return len({event.id for event in starts}) > 1 and len({event.seq for event in starts}) > 1


def _validity(trial, statuses, findings, package_sound) -> str:
    if any(finding.severity == "invalid" for finding in findings):
        return INVALID
    ran = [statuses[rule.name] for rule in REGISTRY if rule.group == VALIDITY]
    proven = all(status in (HELD, NOT_APPLICABLE) for status in ran) and HELD in ran
    unsure = any(
        finding.code in ("T01", "T02", "T03") or finding.severity == "unproven" for finding in findings
    )
    return VALID if proven and package_sound and not unsure else INDETERMINATE


def _totals(trial: Trial) -> tuple[int | None, int | None, str | None]:
    if not trial.ledger.snapshots:
        return None, None, None
    effects = trial.ledger.effects()
    currencies = {effect.row["currency"] for effect in effects if effect.full}
    certain = all(effect.full for effect in effects) and len(currencies) <= 1
    total = sum(effect.row["amount_minor"] for effect in effects) if certain else None
    return len(effects), total, currencies.pop() if certain and currencies else None
