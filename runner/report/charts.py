"""The two charts: what the ledger refunded second by second, and every attempt against the deadline.

Each is drawn twice, for a phone and for a desk, so that its text never has to be scaled. Colours are those
of the light theme; the page's style sheet maps each of them onto the theme in force.
"""

import json
from dataclasses import dataclass
from typing import Any

import altair as alt

from runner.money import money
from runner.protocol_relations import CURRENCY_EXPONENTS
from runner.report import svg
from runner.report.story import Attempt, Story

INK, MUTED, GRID, DAMAGE, BAR, PAPER = "#1b1f24", "#5b6470", "#dfe3e8", "#b3261e", "#c3cad2", "#ffffff"
WIDTHS = {"narrow": 268, "wide": 420}
DOTS, TIMEOUTS, LABEL = 40, 6, 24
LEDGER_HEIGHT = 170
MAX_ROWS, ROW_HEIGHT = 40, 30


@dataclass(frozen=True)
class Picture:
    """One chart in two widths."""

    narrow: str
    wide: str


@dataclass(frozen=True)
class Frame:
    """The axes that charts side by side share, in seconds and minor units."""

    from_s: float
    until_s: float
    top_minor: int
    approved_minor: int
    currency: str

    def major(self, minor: int) -> float:
        """An amount on the axis, in whole units of the currency."""
        return minor / 10 ** CURRENCY_EXPONENTS.get(self.currency, 0)


def frame(stories: list[Story], refund: dict[str, Any]) -> Frame:
    """Return axes on which every given trial has room."""
    totals = [sum(e.amount_minor for e in story.effects) for story in stories]
    starts = [story.since_s(e.at_ms) for story in stories for e in story.effects]
    top = max([refund["approved_minor"], *totals])
    return Frame(
        min([0.0, *starts]),
        max([1.0, *(end_s(story) for story in stories)]),
        top * 5 // 4,
        refund["approved_minor"],
        refund["currency"],
    )


def end_s(story: Story) -> float:
    """How far the ledger is known: to its last snapshot, and at least to the last event."""
    return max([story.since_s(at) for at in (story.read_until_ms, *(e.at_ms for e in story.events))])


def ledger_chart(story: Story, axes: Frame, name: str, label: str) -> Picture:
    """The ledger of one trial, in both widths."""
    return _draw(ledger_layers(story, axes), name, label, LEDGER_HEIGHT)


def ledger_layers(story: Story, axes: Frame) -> alt.LayerChart:
    """Cumulative refunds: the approved amount as a line, what lies above it shaded, timeouts marked."""
    steps, total = [{"s": axes.from_s, "v": 0.0}], 0
    for effect in story.effects:
        total += effect.amount_minor
        steps.append({"s": story.since_s(effect.at_ms), "v": axes.major(total), "label": _money(total, axes)})
    dots = steps[1:] if len(steps) <= DOTS else steps[-1:]
    steps = [*steps, {"s": end_s(story), "v": axes.major(total)}]
    gave_up = [story.since_s(e.at_ms) for e in story.of_type("caller_timeout_recorded")]
    many = f"first of {len(gave_up)} timeouts" if len(gave_up) > TIMEOUTS else "caller gives up"
    timeouts = [{"s": at_s, "label": f"{many}, {at_s:.1f} s"} for at_s in gave_up[:TIMEOUTS]]
    return _ledger_layers(steps, dots, timeouts, axes)


def _ledger_layers(steps: list, dots: list, timeouts: list, axes: Frame) -> alt.LayerChart:
    approved, top = axes.major(axes.approved_minor), axes.major(axes.top_minor)
    span = axes.until_s - axes.from_s
    end = axes.until_s + span * 0.02
    allowed, low = f"approved {_money(axes.approved_minor, axes)}", approved > top * 0.2
    x = alt.X(
        "s:Q",
        title="seconds since the first dispatch",
        scale=alt.Scale(domain=[axes.from_s, end], nice=False),
        axis=alt.Axis(tickCount=6, grid=False, labelFlush=False),
    )
    ticks = sorted({0.0, approved, *(step["v"] for step in steps[-1:])})
    y = alt.Y(
        "v:Q",
        title=None,
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(values=ticks, format=",.0f" if all(t == int(t) for t in ticks) else ",.2f", grid=True),
    )
    step = alt.Chart(_data(steps)).encode(x=x, y=y)
    above = [{**s, "v": max(s["v"], approved)} for s in steps]
    layers = [
        alt.Chart(_data(above))
        .mark_area(interpolate="step-after", color=DAMAGE, opacity=0.22)
        .encode(x=x, y=y, y2=alt.Y2Datum(approved)),
        _rule([{"v": approved}], "y", y),
        *_text([{"v": approved, "s": end}], allowed, x, y, align="right", dx=-2, dy=9 if low else -9),
        step.mark_line(interpolate="step-after", color=INK, strokeWidth=2.25),
    ]
    if timeouts:
        first = timeouts[0]
        layers += [
            _rule(timeouts, "x", x),
            *_text([{**first, "v": top}], first["label"], x, y, align="left", dx=5, dy=7, color=INK),
        ]
    if dots:
        layers += _dots(dots, approved, axes.from_s + span * 0.6, x, y)
    return alt.layer(*layers)


def _dots(dots: list, approved: float, right_of: float, x: Any, y: Any) -> list[alt.Chart]:
    """A dot for each commit, and the total beside the last; what lies above the approved is damage."""
    last = dots[-1]
    colour = DAMAGE if last["v"] > approved else INK
    place = {"align": "right", "dx": -9} if last["s"] > right_of else {"align": "left", "dx": 9}
    split = {
        DAMAGE: [dot for dot in dots if dot["v"] > approved],
        INK: [dot for dot in dots if dot["v"] <= approved],
    }
    return [
        *_text([last], last["label"], x, y, dy=-11, fontWeight="bold", color=colour, **place),
        *(
            alt.Chart(_data(rows)).encode(x=x, y=y).mark_point(filled=True, size=60, color=shade, opacity=1)
            for shade, rows in split.items()
            if rows
        ),
    ]


def _text(rows: list, text: str, x: Any, y: Any, color: str = MUTED, **mark: Any) -> list[alt.Chart]:
    """A text, and beneath it the same in the paper's colour, so that no line runs through it."""
    base = alt.Chart(_data([{**row, "label": text} for row in rows])).encode(x=x, y=y, text="label:N")
    return [
        base.mark_text(color=PAPER, stroke=PAPER, strokeWidth=4, **mark),
        base.mark_text(color=color, **mark),
    ]


def _money(minor: int, axes: Frame) -> str:
    """An amount as a label; a currency may be any text in a package, so it is cut."""
    text = money(minor, axes.currency)
    return text if len(text) <= LABEL else f"{text[:LABEL]}…"


def _rule(rows: list[dict[str, Any]], channel: str, encoding: Any) -> alt.Chart:
    dash = [2, 3] if channel == "y" else [5, 3]
    return (
        alt.Chart(_data(rows))
        .mark_rule(color=MUTED if channel == "y" else INK, strokeDash=dash, strokeWidth=1.25)
        .encode(**{channel: encoding})
    )


def attempts_chart(attempts: list[tuple[int, Attempt]], deadline_ms: int, name: str, label: str) -> Picture:
    """Every attempt of every trial, given with its trial's number, in both widths."""
    height = ROW_HEIGHT * min(len(attempts), MAX_ROWS)
    return _draw(attempt_layers(attempts, deadline_ms), name, label, height)


def attempt_layers(attempts: list[tuple[int, Attempt]], deadline_ms: int) -> alt.LayerChart:
    """One bar for each attempt, from dispatch to its end, against the caller's deadline."""
    longest = max([deadline_ms, *(a.elapsed_ms or 0 for _, a in attempts)])
    rows = [
        {
            "row": f"trial {trial} · #{a.number}",
            "ms": a.elapsed_ms or 0,
            "label": a.outcome if a.elapsed_ms is None else f"{a.outcome}, {a.elapsed_ms:,} ms",
            "inside": (a.elapsed_ms or 0) > longest * 0.55,
            "answered": a.outcome == "answered",
        }
        for trial, a in attempts[:MAX_ROWS]
    ]
    return _attempt_layers(rows, deadline_ms, longest)


def _attempt_layers(rows: list[dict[str, Any]], deadline_ms: int, longest: int) -> alt.LayerChart:
    x = alt.X(
        "ms:Q",
        title="milliseconds since the dispatch",
        axis=alt.Axis(tickCount=5, grid=True),
        scale=alt.Scale(domain=[0, longest * 1.12], nice=False),
    )
    y = alt.Y(
        "row:N",
        title=None,
        sort=[row["row"] for row in rows],
        axis=alt.Axis(ticks=False, domain=False, minExtent=76),
    )
    base = alt.Chart(_data(rows)).encode(x=x, y=y)
    bars = [
        base.transform_filter(alt.datum.answered == answered).mark_bar(height=18, color=colour)
        for answered, colour in ((True, INK), (False, BAR))
    ]
    texts = [
        base.transform_filter((alt.datum.inside == inside) & (alt.datum.answered == answered))
        .mark_text(
            align="right" if inside else "left",
            dx=-6 if inside else 6,
            color=PAPER if inside and answered else INK,
        )
        .encode(text="label:N")
        for inside in (True, False)
        for answered in (True, False)
    ]
    deadline = [{"ms": deadline_ms, "label": f"deadline {deadline_ms:,} ms"}]
    mark = alt.Chart(_data(deadline))
    return alt.layer(
        *bars,
        mark.mark_rule(color=INK, strokeDash=[5, 3], strokeWidth=1.25).encode(x=x),
        mark.mark_text(align="right", dx=-4, dy=-8, color=INK).encode(x=x, y=alt.value(0), text="label:N"),
        *texts,
    )


def _draw(layers: alt.LayerChart, name: str, label: str, height: int) -> Picture:
    spec = specification(layers.properties(height=height, padding=4))
    return Picture(
        **{
            size: svg.render(json.dumps({**spec, "width": width}), f"{name}-{size}", label)
            for size, width in WIDTHS.items()
        }
    )


def specification(chart: Any, validate: bool = False) -> dict[str, Any]:
    """The chart as Vega-Lite. Validating takes longer than drawing, so only the tests do it."""
    return styled(chart).to_dict(validate=validate)


def styled(chart: Any) -> Any:
    """The look that all charts share."""
    return (
        chart.configure(font="sans-serif", background="#00000000")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED,
            titleColor=MUTED,
            titleFontWeight="normal",
            titleFontSize=12,
            labelFontSize=12,
            gridColor=GRID,
            domainColor=MUTED,
            tickColor=MUTED,
            labelLimit=140,
            titlePadding=8,
        )
        .configure_text(fontSize=12)
    )


def _data(rows: list[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=rows)
