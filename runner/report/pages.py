"""The three pages: a package, a comparison, all runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import LabError, UsageError
from runner.names import ADDENDA
from runner.report import page, picture, views
from runner.report.views import PackageView, TrialView
from runner.runs.oracle_command import ask, judge


def report_page(package: Path) -> tuple[str, bool]:
    """The page of one package, and whether the package's integrity holds."""
    shown = views.view(package, judge(package))
    return page.render("report.html", p=shown, limits=views), shown.intact


def picture_file(package: Path) -> str:
    """One SVG of a package's ledgers."""
    return picture.draw(views.view(package, judge(package)))


def comparison_page(packages: list[Path]) -> tuple[str, list[str]]:
    """Variants side by side, one row for each scenario, and why the oracle does not let them be compared.

    One package is enough if it holds every variant.
    """
    compared = ask("compare", *packages)
    shown = [views.view(package, judge(package), draw=False) for package in packages]
    # What has no identity any more is told apart by its place.
    if len({package.verdict["package"]["id"] or package.path.resolve() for package in shown}) < len(shown):
        raise UsageError(
            "a package was given twice, so its trials would be counted twice",
            expected="each package once; one alone is enough if it holds every variant",
            next_step="leave the second one out",
        )
    grades = {package.grade for package in shown}
    text = page.render(
        "compare.html",
        compared=compared,
        variants=sorted({str(trial["variant"]) for trial in compared["trials"]}),
        packages=shown,
        scenarios=_by_scenario(shown),
        # One emulated package makes the whole page emulated.
        grade=grades.pop() if len(grades) == 1 else "emulated" if "emulated" in grades else None,
    )
    return text, compared["reasons"]


def _by_scenario(packages: list[PackageView]) -> dict[str, list[tuple[PackageView, TrialView]]]:
    """Every trial under its scenario: package after package, in each the variants next to each other."""
    found: dict[str, list[tuple[PackageView, TrialView]]] = {}
    for package in packages:
        for trial in sorted(package.trials, key=lambda trial: str(trial.said["variant"])):
            found.setdefault(str(trial.said["scenario"]), []).append((package, trial))
    # Numbered through, so that names and ids are unique on a page of several packages.
    for number, (_, trial) in enumerate((pair for pairs in found.values() for pair in pairs), start=1):
        trial.number = number
    # Trials share their axes where the refund is the same.
    refunds: dict[str, list[PackageView]] = {}
    for package in packages:
        refunds.setdefault(str(package.protocol.get("refund")), []).append(package)
    for alike in refunds.values():
        trials = [trial for package in alike for trial in package.trials]
        views.add_charts(trials, alike[0].protocol.get("refund", {}))
    return found


@dataclass
class RunRow:
    """One run on the page of all runs."""

    run_id: str
    package: str = ""
    verdict: dict[str, Any] | None = None
    note: str = ""
    link: str = ""


def index_page(runs: Path, base: Path) -> str:
    """Every run under `runs`, newest first, each package judged again; links are relative to `base`."""
    if not runs.is_dir():
        raise UsageError(f"there are no runs in {runs}", next_step="python -m runner run")
    places = (folder for folder in runs.iterdir() if folder.is_dir() and folder.name != ADDENDA)
    folders = sorted(places, reverse=True)
    rows = [row for folder in folders for row in _run_rows(folder, base)]
    if not rows:
        raise UsageError(f"there are no runs in {runs}", next_step="python -m runner run")
    return page.render("index.html", rows=rows)


def _run_rows(folder: Path, base: Path) -> list[RunRow]:
    packages = sorted(index.parent for index in folder.glob("*/index.json"))
    if not packages:
        return [RunRow(folder.name, note="no package: nothing was frozen yet")]
    rows = []
    for package in packages:
        row = RunRow(folder.name, package.name)
        try:
            row.verdict = judge(package)
        except LabError as error:
            row.note = error.subject
        made = package.with_name(package.name + ".html")
        if made.is_file() and made.resolve().is_relative_to(base):
            row.link = made.resolve().relative_to(base).as_posix()
        rows.append(row)
    return rows
