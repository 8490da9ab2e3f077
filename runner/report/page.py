"""HTML from templates: everything escaped, one hashed style sheet, and a policy that allows nothing else."""

import base64
import hashlib
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from runner.money import unbroken
from runner.report.timeline import utc

TEMPLATES = Path(__file__).resolve().parent / "templates"
LONGEST_TEXT = 600
# Controls, bidirectional overrides and the like would let a package's text rearrange the page's own.
UNSEEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def render(template: str, **context: Any) -> str:
    """Return one page. Its policy forbids every request and every style but its own."""
    css = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return _environment().get_template(template).render(css=Markup(css), policy=policy, **context)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        money=unbroken,
        utc=lambda at_ms: utc(at_ms, date=True),
        svg=Markup,
        yesno=_yesno,
        known=_known,
        breakable=_breakable,
    )
    return made


def _shown(value: Any) -> Any:
    """Every value on its way into the page: unseen characters become visible, long texts are cut."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if len(value) > LONGEST_TEXT:
        value = f"{value[:LONGEST_TEXT]}… ({len(value)} characters)"
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c) in UNSEEN else c for c in value)


def _breakable(value: str) -> Markup:
    """An event's name, which may be broken after its underscores and, if it must, anywhere."""
    return Markup("_<wbr>").join(Markup.escape(_shown(part)) for part in value.split("_"))


def _yesno(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"


def _known(value: Any) -> Any:
    return "not known" if value is None else value
