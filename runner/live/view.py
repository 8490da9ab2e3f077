"""A run's picture on a terminal: its trials, what each waits for, its queues, and the last events."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from runner.live.picture import Picture, TrialRow

STYLES = {
    "caller_timeout_recorded": "bold red",
    "provider_commit_confirmed": "bold",
    "outcome_unknown": "red",
}


def render(picture: Picture, now_ms: int) -> Group:
    """Return what Rich draws; it drops colours by itself where NO_COLOR asks for it."""
    elapsed = max(0, now_ms - picture.began_at_ms) // 1000
    table = Table(
        title=f"{picture.run_id or 'run'}  {elapsed // 60}:{elapsed % 60:02d}",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for heading, justify in (
        ("Trial", "left"),
        ("Scenario", "left"),
        ("Variant", "left"),
        ("Events", "right"),
        ("Queue", "right"),
        ("DLQ", "right"),
        ("Now", "left"),
    ):
        table.add_column(heading, justify=justify, header_style="dim", overflow="fold")
    for trial_id, row in picture.trials.items():
        now = Text(row.now, style="dim" if row.ended else "")
        table.add_row(
            trial_id.rsplit("-", 1)[-1],
            row.scenario,
            row.variant,
            str(row.events),
            queue(row),
            dead(row),
            now,
        )
    events = [Text(line, style=_style(line), no_wrap=True, overflow="ellipsis") for line in picture.events]
    return Group(*events, Text(), table)


def queue(row: TrialRow) -> str:
    """Messages waiting and in flight: `0+1` is one in flight."""
    return "-" if row.visible is None else f"{row.visible}+{row.in_flight}"


def dead(row: TrialRow) -> Text:
    """Messages in the dead-letter queue."""
    return Text("-" if row.dead is None else str(row.dead), style="bold red" if row.dead else "")


def _style(line: str) -> str:
    return next((style for name, style in STYLES.items() if f" {name}" in line), "")
