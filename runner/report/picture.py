"""One picture of a package for a README: an SVG that stands alone and follows the reader's theme."""

import json

import altair as alt

from runner.errors import LabError
from runner.report import charts, svg
from runner.report.views import PackageView

WIDTH = 360
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"
DARK = {
    charts.INK: "#e8eaed",
    charts.MUTED: "#a0a8b2",
    charts.GRID: "#31373e",
    charts.DAMAGE: "#ff8a80",
    charts.PAPER: "#0d1117",
}


def draw(package: PackageView) -> str:
    """Return the ledgers of all trials as one SVG. Raises LabError if there is none to draw."""
    drawn = [trial for trial in package.trials if trial.axes]
    if not drawn:
        raise LabError("there is no ledger to draw", found=package.answer[1])
    cells = [
        charts.ledger_layers(trial.story, trial.axes).properties(
            width=WIDTH,
            height=charts.LEDGER_HEIGHT,
            title=alt.Title(
                f"{trial.said['variant']}: {trial.said['verdict']}",
                subtitle=str(trial.said["scenario"]),
                anchor="start",
                color=charts.INK,
                subtitleColor=charts.MUTED,
                fontSize=14,
                subtitleFontSize=11,
                offset=10,
            ),
        )
        for trial in drawn
    ]
    said = package.verdict
    title = f"What the ledger refunded for an approved {package.approved}"
    heading = alt.Title(
        title,
        subtitle=f"{said['protocol']}, grade: {package.grade}, package {package.id[:12]}",
        anchor="start",
        color=charts.INK,
        subtitleColor=charts.MUTED,
        fontSize=17,
        subtitleFontSize=12,
        offset=18,
    )
    grid = alt.concat(*cells, columns=2, spacing={"row": 28, "column": 36}).properties(
        title=heading, padding=16
    )
    label = f"{title}. {' '.join(package.answer)} Grade: {package.grade}."
    return svg.render(json.dumps(charts.specification(grid)), "picture", label, style=_style())


def _style() -> str:
    rules = [
        f'[{name}="{light}"]{{{name}:{dark}}}' for light, dark in DARK.items() for name in ("fill", "stroke")
    ]
    return f"text{{font-family:{FONT}}}@media (prefers-color-scheme:dark){{{''.join(rules)}}}"
