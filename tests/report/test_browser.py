"""The pages in a real browser: quiet, without requests, readable at both widths and in both themes."""

import re
from contextlib import contextmanager

import pytest

from runner.money import money
from runner.report import pages
from tests.report import packages
from tests.report.conftest import MADE

pytestmark = pytest.mark.slow

PHONE, DESK = {"width": 360, "height": 740}, {"width": 1200, "height": 800}
# What hostile content would do if it could; with the policy in force it only leaves a trace of the refusal.
ATTACK = """() => {
  window.refused = [];
  document.addEventListener('securitypolicyviolation', e => window.refused.push(e.effectiveDirective));
  const add = (tag, values) => document.body.append(Object.assign(document.createElement(tag), values));
  add('script', {textContent: 'window.owned = true'});
  add('style', {textContent: 'body { display: none }'});
  add('img', {src: 'https://example.invalid/x.png'});
  add('iframe', {src: 'https://example.invalid/'});
  add('p', {style: 'color: red'});
  fetch('https://example.invalid/').catch(() => {});
  const found = () => [[...new Set(window.refused)], window.owned, getComputedStyle(document.body).display];
  return new Promise(done => setTimeout(() => done(found()), 50));
}"""
CONTRAST = """() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const against = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const found = {};
  for (const selector of ['body', '.question', '.answer.fail strong', '.aside', 'caption', 'small', 'dt'])
    found[selector] = against(light(getComputedStyle(document.querySelector(selector)).color), paper);
  for (const text of document.querySelectorAll('svg text:not([stroke])')) {
    const fill = light(getComputedStyle(text).fill), name = text.getAttribute('fill');
    // White texts stand on bars in the ink's colour.
    const ground = name === '#ffffff' ? light(getComputedStyle(document.body).color) : paper;
    found['svg ' + name] = against(fill, ground);
  }
  for (const selector of ['.badge.fail', '.grade.emulated p', '.tag']) {
    const style = getComputedStyle(document.querySelector(selector));
    found[selector] = against(light(style.color), light(style.backgroundColor));
  }
  return found;
}"""
CLIPPED = """() => [...document.querySelectorAll('svg text')].filter(text => {
  const box = text.getBoundingClientRect();
  return box.left < 0 || box.right > document.documentElement.clientWidth;
}).map(text => text.textContent)"""


@contextmanager
def opened(browser, url, viewport=DESK, theme="light"):
    """The page, and everything it said or asked for."""
    context = browser.new_context(viewport=viewport, color_scheme=theme)
    page = context.new_page()
    page.noise = []
    page.on("console", lambda message: page.noise.append(message.text))
    page.on("pageerror", lambda error: page.noise.append(str(error)))
    page.on("request", lambda request: page.noise.append(request.url) if request.url != url else None)
    page.goto(url)
    try:
        yield page
    finally:
        context.close()


@pytest.mark.parametrize("name", MADE)
def test_no_page_says_asks_or_overflows(browser, shown, name):
    for viewport, theme in ((PHONE, "light"), (DESK, "dark")):
        with opened(browser, shown(name).url, viewport, theme) as page:
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
            assert page.evaluate(CLIPPED) == []
            assert page.evaluate("document.scripts.length") == 0
            assert page.noise == []


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_comparison_and_index_are_as_quiet(browser, shown, tmp_path, viewport):
    runs = shown("four").package.parents[1]
    for name, text in (
        ("comparison", pages.comparison_page([shown("hostile_text").package])[0]),
        ("index", pages.index_page(runs, runs)),
    ):
        file = tmp_path / f"{name}.html"
        file.write_text(text, encoding="utf-8")
        with opened(browser, file.as_uri(), viewport) as page:
            assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"], name
            assert page.evaluate(CLIPPED) == []
            assert page.noise == []


def test_the_policy_refuses_what_hostile_content_would_do(browser, shown):
    with opened(browser, shown("hostile_text").url) as page:
        refused, owned, display = page.evaluate(ATTACK)
    assert owned is None and display == "block"
    assert {d.removesuffix("-elem").removesuffix("-attr") for d in refused} == {
        "script-src",
        "style-src",
        "img-src",
        "frame-src",
        "connect-src",
    }


def test_hostile_text_is_text(browser, shown):
    with opened(browser, shown("hostile_text").url) as page:
        assert "owned" not in page.title()
        heading = page.locator("h1").inner_text()
        assert heading.startswith("</style></script><script>document.title='owned'</script><img src=x")
        assert heading.endswith("\\u202egnp.exe\\u2066")
        assert page.locator("tr[data-trial='2'] [data-key=variant]").inner_text() == packages.QUOTES
        assert page.locator("script, img, [onerror], [onload]").count() == 0


@pytest.mark.parametrize("name", ["four", "only_control", "hostile_text", "many_events"])
def test_every_figure_in_the_page_is_the_oracles(browser, shown, name):
    verdict = shown(name).verdict
    with opened(browser, shown(name).url) as page:
        assert page.locator("[data-key=package-verdict]").inner_text() == verdict["verdict"]
        assert page.locator("[data-key=package-id]").inner_text() == verdict["package"]["id"]
        rows = page.locator("tr[data-trial]").all()
        assert len(rows) == len(verdict["trials"])
        for row, said in zip(rows, verdict["trials"], strict=True):
            read = {
                cell.get_attribute("data-key"): cell.inner_text() for cell in row.locator("[data-key]").all()
            }
            assert read.pop("refunded_minor").replace("\u00a0", " ") == money(
                said["refunded_minor"], said["currency"]
            )
            assert row.locator("data").get_attribute("value") == str(said["refunded_minor"])
            assert (
                read.pop("correct_completion")
                == {True: "yes", False: "no", None: "not known"}[said["correct_completion"]]
            )
            assert read == {key: str(said[key]) for key in read}
            assert len(read) == 7


def test_each_chart_ends_at_the_oracles_figure_and_has_its_table(browser, shown):
    said = shown("four").verdict["trials"]
    with opened(browser, shown("four").url) as page:
        figures = page.locator(".charts figure").all()
        assert len(figures) == len(said)
        for figure, trial in zip(figures, said, strict=True):
            total = money(trial["refunded_minor"], trial["currency"])
            texts = figure.locator(".wide svg text").all_text_contents()
            assert total in [text.replace("\u00a0", " ") for text in texts]
            assert any(text.startswith("caller gives up") for text in texts) == (
                trial["scenario"] != "CONTROL"
            )
            figure.locator("summary").focus()
            page.keyboard.press("Enter")
            assert figure.locator("tbody tr").count() == trial["ledger_transactions"]
            assert figure.locator("tbody tr").first.is_visible()
            assert "emulated" in figure.locator("figcaption").inner_text().lower()
        assert page.locator("svg[role=img][aria-label]").count() == page.locator("svg").count()


def test_attempts_are_drawn_with_the_callers_own_durations(browser, shown):
    with opened(browser, shown("four").url) as page:
        texts = page.locator(".one .wide svg text").all_text_contents()
    ends = [text for text in texts if re.search(r"(answered|gave up), ", text)]
    assert sorted(ends) == ["answered, 150 ms"] * 4 + ["gave up, 3,001 ms"] * 2
    assert "deadline 3,000 ms" in texts


def test_a_keyboard_and_a_screen_reader_find_their_way(browser, shown):
    with opened(browser, shown("four").url) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        assert page.locator("main").count() == page.locator("h1").count() == 1
        assert page.evaluate("document.documentElement.lang") == "en"
        levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")
        assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
        tables = page.locator("table").count()
        assert page.locator("table:has(caption):has(th[scope=col])").count() == tables > 5
        unreachable = page.evaluate(
            "[...document.querySelectorAll('.scroll, pre')].filter(e => e.tabIndex !== 0).length"
        )
        assert unreachable == 0


@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_emulated_stays_in_sight(browser, shown, viewport):
    with opened(browser, shown("four").url, viewport) as page:
        band = page.get_by_role("note", name="Grade")
        page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight / 2)")
        box = band.bounding_box()
        assert 0 <= box["y"] < 5 and "EMULATED" in band.inner_text().upper()
        assert page.title().startswith("[emulated]")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast_in_both_themes(browser, shown, theme):
    with opened(browser, shown("four").url, theme=theme) as page:
        ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 10
    assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


def test_print_shows_the_tables_and_the_grade(browser, shown):
    with opened(browser, shown("four").url) as page:
        page.emulate_media(media="print")
        assert page.locator(".charts figure tbody tr").first.is_visible()
        assert page.get_by_role("note", name="Grade").is_visible()
        assert len(page.pdf()) > 10_000


def test_broken_integrity_is_all_there_is(browser, shown):
    with opened(browser, shown("broken").url, PHONE) as page:
        assert page.locator("h1").inner_text() == "A package whose bytes have changed"
        assert page.locator(".findings .code").all_inner_texts() == ["P14"]
        assert page.locator("svg, [data-trial], .timeline").count() == 0
