"""The page as text: what it says of each package, and what it refuses to say."""

import base64
import hashlib
import html
import json
import re
import subprocess
import tarfile
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from oracle.judge import judge_path
from runner.cli import main
from runner.errors import EXIT_OK, EXIT_USAGE, LabError
from runner.report import charts, page, pages, svg, views
from runner.report.answer import answer
from runner.report.evidence import Evidence
from runner.report.timeline import lines
from runner.runs.oracle_command import judge
from tests.oracle.builder import reindex, write
from tests.report import packages
from tests.report.conftest import MADE

PROJECT = Path(__file__).resolve().parents[2]
PUBLISHED = PROJECT / "evidence/published/study-1/study-1-evidence.tar.gz"
LARGEST_PAGE = 1_500_000
VOID = {"meta", "br", "wbr", "hr", "img", "input", "link"}


class Nesting(HTMLParser):
    """Collects every element, and whether all are closed in order."""

    def __init__(self, html: str):
        super().__init__()
        self.open, self.seen, self.wrong = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.wrong.append((tag, self.open[-3:]))


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_every_page_is_small_well_nested_and_holds_nothing_active(shown, name):
    made = Nesting(shown(name).html)
    assert len(shown(name).html.encode()) < LARGEST_PAGE
    assert (made.open, made.wrong) == ([], [])
    assert {tag for tag, _ in made.seen} & {
        "script",
        "img",
        "iframe",
        "object",
        "link",
        "base",
        "form",
    } == set()
    attributes = [(key, value) for _, attrs in made.seen for key, value in attrs.items()]
    assert [key for key, _ in attributes if key.startswith("on") or key in ("style", "src", "srcset")] == []
    assert [v for k, v in attributes if k in ("href", "xlink:href") and not v.startswith("#")] == []
    ids = [value for key, value in attributes if key == "id"]
    assert len(ids) == len(set(ids))
    anchors = {value[1:] for key, value in attributes if key == "href"}
    assert anchors <= set(ids)


@pytest.mark.slow
def test_the_policy_allows_the_pages_own_style_and_nothing_else(shown):
    text = shown("hostile_text").html
    style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.replace("&#39;", "'") == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_broken_integrity_shows_what_is_wrong_and_no_figure(shown):
    broken = shown("broken")
    text = broken.html
    assert [f["code"] for f in broken.verdict["integrity"]["findings"]] == ["P14"]
    assert "P14" in text and "trials/treatment-durable/ledger.jsonl" in text
    assert "Not judged." in text and "Grade not known" in text
    for fact in ("<svg", "R$", "SUCCEEDED", "COMMIT_THEN_TIMEOUT", "provider_commit", "run-1"):
        assert fact not in text, fact


def test_no_trials_is_said_and_no_chart_is_drawn(shown):
    assert "This package holds no trial" in shown("no_trials").html
    assert "<svg" not in shown("no_trials").html


BAD = sorted(path.parent for path in (PROJECT / "tests/golden/bad").glob("*/expected.json"))


@pytest.mark.parametrize("folder", BAD, ids=lambda folder: folder.name)
def test_every_bad_package_has_a_page_that_names_what_is_wrong(folder):
    (package,) = (path for path in folder.iterdir() if path.name != "expected.json")
    package = package if (package / "index.json").exists() or package.is_file() else next(package.iterdir())
    verdict = judge_path(package).as_json()
    shown = views.view(package, verdict, draw=False)
    text = html.unescape(page.render("report.html", p=shown, limits=views))
    parts = [verdict, verdict["probe"] or {}, *verdict["trials"]] if shown.intact else [verdict["integrity"]]
    codes = {finding["code"] for part in parts for finding in part.get("findings", ())}
    assert folder.name.partition("_")[0] in codes
    assert {code for code in codes if f">{code}</code>" not in text} == set()
    assert ("<table" in text) == shown.intact


@pytest.mark.slow
def test_five_hundred_events_are_cut_and_counted(shown):
    made = shown("many_events")
    assert made.html.count("<tr") < views.PAGE_LINES + 400
    assert "Only the first 40 are drawn." in made.html


@pytest.mark.slow
def test_long_ids_are_cut_and_their_length_is_said(shown):
    assert packages.LONG not in shown("long_ids").html
    assert f"({len(packages.LONG)} characters)" in shown("long_ids").html


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain R$ 100.00", "plain R$ 100.00"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb\u0000", "a\\u200bb\\u0000"),
        ("São Paulo 東京", "São Paulo 東京"),
        (7, 7),
    ],
)
def test_unseen_characters_become_visible(value, expected):
    assert page._shown(value) == expected


def said(verdict, *trials, ok=True):
    return {"verdict": verdict, "integrity": {"ok": ok}, "trials": list(trials)}


def trial(scenario, variant, verdict, refunded, processing="SUCCEEDED"):
    return {
        "scenario": scenario,
        "variant": variant,
        "verdict": verdict,
        "refunded_minor": refunded,
        "currency": "BRL",
        "processing": processing,
    }


TWICE = [trial("COMMIT_THEN_TIMEOUT", v, "fail", 20000) for v in ("conventional", "durable")]
ONCE = [trial("CONTROL", v, "pass", 10000) for v in ("conventional", "durable")]
ANSWERS = {
    "both fail": (
        said("fail", *TWICE),
        "No. Under COMMIT_THEN_TIMEOUT, conventional and durable each refunded R$ 200.00 for an approved "
        "R$ 100.00, and the system reports success.",
    ),
    "controls pass": (
        said("pass", *ONCE),
        "Yes, here. Under CONTROL, conventional and durable each refunded R$ 100.00 once.",
    ),
    "one fails and is still in progress": (
        said("fail", trial("CONTROL", "durable", "fail", 0, "IN_PROGRESS")),
        "No. Under CONTROL, durable refunded R$ 0.00 for an approved R$ 100.00, and the system reports "
        "IN_PROGRESS.",
    ),
    "nothing can be said": (
        said("indeterminate", trial("CONTROL", "durable", "indeterminate", None)),
        "It cannot be said. Under CONTROL, durable left evidence that allows no verdict.",
    ),
    "no trial": (said("indeterminate"), "No answer. No trial was run in this package."),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_the_answer_follows_the_verdicts(case):
    verdict, expected = ANSWERS[case]
    assert " ".join(answer(verdict, "R$ 100.00")).replace("\u00a0", " ") == expected


def test_the_timeline_joins_journal_and_durable_history_like_the_article(shown):
    made = shown("four")
    package = views.view(made.package, made.verdict)
    (durable,) = [t for t in package.trials if t.said["trial_id"] == "treatment-durable"]
    told = [(line.number, line.source, line.type) for line in lines(durable.story, keys_only=True)]
    journal = [entry for entry in told if entry[1] != "durable"]
    assert journal == [
        ("6", "caller", "dispatch_started"),
        ("8", "provider", "provider_commit_confirmed"),
        ("9", "caller", "caller_timeout_recorded"),
        ("10", "release", "release_signalled"),
        ("11", "provider", "response_released"),
        ("13", "caller", "dispatch_started"),
        ("15", "provider", "provider_commit_confirmed"),
        ("17", "caller", "response_received"),
        ("18", "caller", "request_finished"),
    ]
    history = [entry[2] for entry in told if entry[1] == "durable"]
    assert history == ["StepStarted", "StepFailed", "StepStarted", "StepSucceeded", "ExecutionSucceeded"]
    every = lines(durable.story, keys_only=False)
    assert [int(line.number) for line in every if line.source != "durable"] == list(range(1, 20))


def test_a_ledger_that_does_not_add_up_to_the_oracles_figure_is_not_drawn(shown):
    made = shown("four")
    verdict = json.loads(json.dumps(made.verdict))
    verdict["trials"][0]["refunded_minor"] += 1
    package = views.view(made.package, verdict)
    assert [trial.ledger is None for trial in package.trials] == [True, False, False, False]
    assert "do not add up" in package.trials[0].ledger_note


@pytest.mark.slow
def test_every_chart_is_valid_vega_lite(shown):
    """The page itself leaves validation out, because it takes longer than drawing."""
    made = shown("four")
    package = views.view(made.package, made.verdict)
    layers = [charts.ledger_layers(trial.story, trial.axes) for trial in package.trials[2:]]
    for layer in [*layers, charts.attempt_layers(package.attempts, package.deadline_ms)]:
        assert charts.specification(layer, validate=True)["$schema"].endswith("/v6.4.1.json")


def test_lines_that_the_oracle_could_not_read_are_not_shown(tmp_path):
    package = packages.four()
    files = package.render()
    name = "trials/control-durable/ledger.jsonl"
    files[name] = files[name].replace(b'"Count":1', b'"Count":1,"Count":1')  # a repeated key: J07
    path = write(reindex(files), tmp_path)
    verdict = judge(path)
    assert list(Evidence(path, verdict).records(name, "ledger_snapshot_")) == []


def test_bytes_that_change_after_the_verdict_end_the_report(tmp_path):
    path = packages.four().write(tmp_path)
    verdict = judge(path)
    evidence = Evidence(path, verdict)
    (path / "run.json").write_bytes(b"{}\n")
    with pytest.raises(LabError, match="changed while it was being read"):
        evidence.read("run.json")


@pytest.mark.slow
def test_an_archive_gives_the_same_figures_as_its_folder(tmp_path):
    path = packages.only_control().write(tmp_path)
    archive = tmp_path / "copy.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(path, arcname=path.name)
    views_of = [views.view(place, judge(place)) for place in (path, archive)]
    assert [t.story.effects for t in views_of[0].trials] == [t.story.effects for t in views_of[1].trials]
    assert views_of[0].id == views_of[1].id == path.name


def test_what_the_page_tells_a_reader_to_run_works(shown):
    """The commands are taken from the page itself."""
    made = shown("four")
    (commands,) = re.findall(r"<code>(cd PACKAGE.*?)</code>", made.html, re.S)
    commands = html.unescape(commands).replace("cd PACKAGE", f"cd {made.package}")
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", commands], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [made.package.name, "index.json"]


@pytest.mark.slow
def test_a_picture_stands_alone(tmp_path):
    path = packages.package_with(packages.treatment).write(tmp_path)
    root = ElementTree.fromstring(pages.picture_file(path))
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= svg.ALLOWED | {"style"}
    assert {"width", "height", "viewBox", "aria-label"} <= set(root.attrib)
    with pytest.raises(LabError, match="no ledger to draw"):
        pages.picture_file(packages.no_trials().write(tmp_path / "none"))


def _structure(text: str):
    """Elements and texts of a picture; not coordinates, which depend on the fonts at hand."""
    return [(element.tag, element.text) for element in ElementTree.fromstring(text).iter()]


@pytest.mark.slow
def test_the_readmes_picture_is_what_its_command_draws(tmp_path):
    """Regenerate: python -m runner report evidence/published/study-1/study-1-evidence.tar.gz --picture \
    --out docs/refunds.svg
    """
    drawn = tmp_path / "refunds.svg"
    assert main(["report", str(PUBLISHED), "--picture", "--out", str(drawn)]) == EXIT_OK
    assert _structure(drawn.read_text()) == _structure((PROJECT / "docs/refunds.svg").read_text())
    texts = [text for _, text in _structure(drawn.read_text()) if text]
    verdict = judge(PUBLISHED)
    assert verdict["grade"] == "emulated" and any("grade: emulated" in text for text in texts)
    assert [f"{t['variant']}: {t['verdict']}" for t in verdict["trials"]] == [
        text for text in texts if re.fullmatch(r"\w+: (pass|fail)", text)
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["report"], "nothing to report on"),
        (["report", "/nowhere"], "does not exist"),
        (["report", ".", ".", "--out", "x.html"], "one report shows one package"),
        (["report", "--index", "."], "--index shows every run"),
        (["report", "--index", "--compare"], "one page at a time"),
        (["report", "docs", "--out", "docs/inside.html"], "would break its integrity"),
        (["report", "docs"], "the oracle refused"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_written(
    arguments, complaint, capsys, monkeypatch
):
    monkeypatch.chdir(PROJECT)
    assert main(arguments) == EXIT_USAGE
    assert complaint in capsys.readouterr().err
    assert not (PROJECT / "docs.html").exists()


def test_a_broken_package_is_said_to_be_broken_where_the_page_is_asked_for(tmp_path, capsys):
    path = packages.broken(tmp_path)
    assert main(["report", str(path)]) == EXIT_OK
    told = capsys.readouterr()
    assert told.out.strip() == str(path.with_name(path.name + ".html"))
    assert told.err == "the package's integrity is broken; the page says how, and shows no figure\n"


def test_the_page_lies_beside_the_package_and_never_in_it(tmp_path, capsys):
    path = packages.no_trials().write(tmp_path)
    assert main(["report", str(path)]) == EXIT_OK
    out = Path(capsys.readouterr().out.strip())
    assert out == path.with_name(path.name + ".html") and out.is_file()
    assert judge(path)["integrity"]["ok"] is True
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


@pytest.mark.slow
def test_a_package_of_another_version_is_not_said_to_have_changed(tmp_path):
    path = packages.no_trials().write(tmp_path / "in")
    files = {f.relative_to(path).as_posix(): f.read_bytes() for f in path.rglob("*") if f.is_file()}
    files["index.json"] = files["index.json"].replace(b'"version":1', b'"version":2')
    text = html.unescape(pages.report_page(write(files, tmp_path / "out"))[0])
    assert "a package in a format that the oracle knows" in text and "those that were frozen" not in text
