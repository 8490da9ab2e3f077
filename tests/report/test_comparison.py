"""Several packages on one page: the comparison of variants, and the index of all runs."""

import html
import re

import pytest

from runner.cli import main
from runner.errors import EXIT_OK, EXIT_USAGE
from runner.report import pages
from runner.runs.oracle_command import ask
from tests.report import packages


@pytest.mark.slow
def test_variants_stand_side_by_side_with_the_oracles_eligibility(tmp_path):
    path = packages.only_control().write(tmp_path)
    text, reasons = pages.comparison_page([path])
    assert reasons == []
    assert ask("compare", path)["eligible"] is True
    assert "Eligible." in text
    rows = re.findall(r'data-key="variant">(\w+)<', text)
    assert rows == ["conventional", "durable"]
    alone = packages.package_with(packages.control).write(tmp_path / "alone")
    text, reasons = pages.comparison_page([path, alone])
    assert "Not eligible." in text
    assert reasons == ask("compare", path, alone)["reasons"] != []
    assert [reason for reason in reasons if reason not in html.unescape(text)] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (packages.package_with(packages.control), "Every trial here is of the variant conventional"),
        (packages.no_trials(), "The packages show no trial at all"),
    ],
    ids=["one variant", "no trial"],
)
def test_a_comparison_of_less_than_two_variants_says_what_it_lacks(tmp_path, capsys, made, said):
    path = made.write(tmp_path)
    assert main(["report", "--compare", str(path), "--out", str(tmp_path / "c.html")]) == EXIT_OK
    assert "not eligible for a comparison; the page says why" in capsys.readouterr().err
    text = (tmp_path / "c.html").read_text()
    assert "Nothing to compare." in text and said in text and "The oracle does not allow" not in text


@pytest.mark.slow
def test_one_package_with_both_variants_is_compared_without_a_word(tmp_path, capsys):
    path = packages.only_control().write(tmp_path)
    assert main(["report", "--compare", str(path), "--out", str(tmp_path / "c.html")]) == EXIT_OK
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_package_given_twice_is_refused(tmp_path, capsys):
    path = packages.only_control().write(tmp_path)
    out = tmp_path / "c.html"
    assert main(["report", "--compare", str(path), str(path), "--out", str(out)]) == EXIT_USAGE
    assert "a package was given twice" in capsys.readouterr().err and not out.exists()


def test_the_index_lists_every_run_with_its_verdict(tmp_path):
    for name, package in (("run-a", packages.four()), ("run-b", packages.only_control())):
        made = package.write(tmp_path / name)
        made.with_name(made.name + ".html").write_text("made before")
    (tmp_path / "run-c").mkdir()
    packages.broken(tmp_path / "run-d")
    text = pages.index_page(tmp_path, tmp_path)
    assert re.findall(r'data-label="Run">(?:<a href="([^"]+)">)?([\w-]+)', text) == [
        ("", "run-d"),
        ("", "run-c"),
        (next((tmp_path / "run-b").glob("*.html")).relative_to(tmp_path).as_posix(), "run-b"),
        (next((tmp_path / "run-a").glob("*.html")).relative_to(tmp_path).as_posix(), "run-a"),
    ]
    assert re.findall(r'data-label="Verdict"><span class="badge (\w+)">', text) == [
        "indeterminate",
        "pass",
        "fail",
    ]
    assert "nothing was frozen yet" in text and "integrity broken: not judged" in text
