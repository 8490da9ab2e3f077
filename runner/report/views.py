"""What the templates show of one package: the oracle's words, and the stories beside them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.money import unbroken
from runner.report import charts
from runner.report.answer import answer, question
from runner.report.charts import Frame, Picture
from runner.report.evidence import Evidence
from runner.report.story import Attempt, Story, read_story
from runner.report.timeline import Line, lines

# A page stays under 1.5 MB whatever a package holds; what is cut is counted and said.
KEY_LINES, ALL_LINES, PAGE_LINES = 60, 600, 2000
FINDINGS, FILES, CHARTS = 20, 200, 12
LONGEST_WORD = 20


@dataclass
class TrialView:
    """One trial on the page."""

    number: int
    said: dict[str, Any]  # what the oracle says
    story: Story
    axes: Frame | None = None
    ledger: Picture | None = None
    ledger_note: str = ""
    key_lines: list[Line] = field(default_factory=list)
    all_lines: list[Line] = field(default_factory=list)
    lines_cut: int = 0

    @property
    def anchor(self) -> str:
        """A safe id for links: never text from the package."""
        return f"trial-{self.number}"

    @property
    def long(self) -> bool:
        """Whether a text is so long that the table may break it anywhere."""
        return any(
            len(str(self.said[key])) > LONGEST_WORD
            for key in ("scenario", "variant", "currency", "processing")
        )

    @property
    def unrun(self) -> list[str]:
        """Rules that gave no answer, which is why a verdict may be indeterminate."""
        answered = ("held", "broken", "not applicable")
        return [f"{name} ({status})" for name, status in self.said["rules"].items() if status not in answered]


@dataclass
class PackageView:
    """One package on the page. With broken integrity only the oracle's words are there."""

    path: Path
    verdict: dict[str, Any]
    protocol: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    files: list[dict[str, Any]] = field(default_factory=list)
    trials: list[TrialView] = field(default_factory=list)
    attempts: list[tuple[int, Attempt]] = field(default_factory=list)
    attempts_chart: Picture | None = None

    @property
    def intact(self) -> bool:
        """Whether the bytes are those that were frozen."""
        return self.verdict["integrity"]["ok"]

    @property
    def id(self) -> str:
        """The package's identity."""
        return self.verdict["package"]["id"] or "not known"

    @property
    def grade(self) -> str | None:
        """Where it was made; a package whose bytes have changed does not say so either."""
        return self.verdict["grade"] if self.intact else None

    @property
    def emulated(self) -> bool:
        """Anything that is not proven to be AWS counts as emulated."""
        return self.grade != "aws"

    @property
    def approved(self) -> str:
        """The approved amount, for people."""
        refund = self.protocol.get("refund", {})
        return unbroken(refund.get("approved_minor"), refund.get("currency"))

    @property
    def deadline_ms(self) -> int | None:
        """The caller's deadline."""
        value = self.protocol.get("caller", {}).get("deadline_ms")
        return value if isinstance(value, int) else None

    @property
    def question(self) -> str:
        """The question of the study, with this protocol's numbers."""
        return question(self.protocol)

    @property
    def answer(self) -> tuple[str, str]:
        """This package's answer: a word and a sentence."""
        return answer(self.verdict, self.approved)

    @property
    def commit(self) -> str | None:
        """The commit that the run was made from, if the package names one."""
        code = self.environment.get("code")
        return code.get("commit") if isinstance(code, dict) else None

    @property
    def is_archive(self) -> bool:
        """Whether the package is a .tar or .tar.gz."""
        return not self.path.is_dir()


def view(path: Path, verdict: dict[str, Any], draw: bool = True) -> PackageView:
    """Read what the page shows of a package that the oracle has just judged; `draw` adds the charts."""
    shown = PackageView(path, verdict)
    if not shown.intact:
        return shown
    evidence = Evidence(path, verdict)
    shown.files = evidence.index
    shown.protocol = _tables(evidence.document("protocol.json"))
    shown.environment = evidence.document("environment.json")
    shown.run = evidence.document("run.json")
    for number, said in enumerate(verdict["trials"], start=1):
        shown.trials.append(TrialView(number, said, read_story(evidence, said)))
    _add_lines(shown.trials)
    shown.attempts = [(t.number, attempt) for t in shown.trials for attempt in t.story.attempts()]
    if not draw:
        return shown
    add_charts(shown.trials, shown.protocol.get("refund", {}))
    if shown.attempts and shown.deadline_ms is not None:
        label = f"Bar chart of {len(shown.attempts)} attempts against a deadline of {shown.deadline_ms} ms"
        shown.attempts_chart = charts.attempts_chart(shown.attempts, shown.deadline_ms, "attempts", label)
    return shown


def add_charts(trials: list[TrialView], refund: dict[str, Any]) -> None:
    """Draw each trial's ledger. Trials of one scenario share their axes, so that they can be compared."""
    for number, trial in enumerate(trials):
        trial.ledger_note = _why_no_chart(trial, refund) if number < CHARTS else "Only the first are drawn."
    drawn = [trial for trial in trials if not trial.ledger_note]
    for scenario in {str(trial.said["scenario"]) for trial in drawn}:
        together = [trial for trial in drawn if str(trial.said["scenario"]) == scenario]
        axes = charts.frame([trial.story for trial in together], refund)
        axes = Frame(axes.from_s, axes.until_s, _top(drawn, refund), axes.approved_minor, axes.currency)
        for trial in together:
            trial.axes = axes
            label = (
                f"Trial {trial.number}: cumulative refunds in the ledger, "
                f"{len(trial.story.effects)} transactions, table below"
            )
            trial.ledger = charts.ledger_chart(trial.story, trial.axes, f"ledger-{trial.number}", label)


def _top(trials: list[TrialView], refund: dict[str, Any]) -> int:
    return charts.frame([trial.story for trial in trials], refund).top_minor


def _why_no_chart(trial: TrialView, refund: dict[str, Any]) -> str:
    """A chart is drawn only if its end is the oracle's own figure."""
    effects = trial.story.effects
    counted = (len(effects), sum(e.amount_minor for e in effects))
    said = (trial.said["ledger_transactions"], trial.said["refunded_minor"])
    if said[0] is None or said[1] is None:
        return "The oracle could not establish what was refunded, so nothing is drawn."
    if counted != said or {e.currency for e in effects} - {refund.get("currency")}:
        return "The rows that can be shown do not add up to the oracle's figure, so nothing is drawn."
    if not isinstance(refund.get("approved_minor"), int) or refund["approved_minor"] <= 0:
        return "The approved amount cannot be read, so nothing is drawn."
    return ""


def _add_lines(trials: list[TrialView]) -> None:
    left = PAGE_LINES
    for trial in trials:
        keys, every = lines(trial.story, keys_only=True), lines(trial.story, keys_only=False)
        trial.key_lines = keys[: min(KEY_LINES, left)]
        left -= len(trial.key_lines)
        trial.all_lines = every[: min(ALL_LINES, left)]
        left -= len(trial.all_lines)
        trial.lines_cut = len(every) - len(trial.all_lines)


def _tables(protocol: dict[str, Any]) -> dict[str, Any]:
    """The protocol's tables; anything that is not a table is left out."""
    return {key: value for key, value in protocol.items() if isinstance(value, dict)}
