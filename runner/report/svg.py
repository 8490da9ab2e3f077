"""A Vega-Lite chart as inline SVG: shapes and text alone, in colours that the page can map onto its theme."""

import re
from typing import Any
from xml.etree import ElementTree

import vl_convert

from runner.errors import LabError

VEGA_LITE = "6.4"
NAMESPACE = "http://www.w3.org/2000/svg"
ALLOWED = {"svg", "g", "path", "line", "rect", "text", "tspan", "defs", "clipPath"}
KEPT = re.compile(
    r"id|x|y|x1|x2|y1|y2|dx|dy|d|width|height|viewBox|transform|fill|stroke|opacity|"
    r"clip-path|text-anchor|(fill|stroke|font)-[a-z]+"
)
ElementTree.register_namespace("", NAMESPACE)


def render(spec: str, name: str, label: str, style: str = "") -> str:
    """Return the chart as one `<svg role="img">`; `name` makes its ids unique, `label` is read aloud.

    Inside a page it takes the page's width and styles; with `style` it stands alone, at its own size.
    """
    root = ElementTree.fromstring(vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE))
    _clean(root, name)
    root[:] = [child for child in root if not child.tag.endswith("}rect")]  # the background
    root.set("role", "img")
    root.set("aria-label", label)
    if style:
        sheet = ElementTree.Element(f"{{{NAMESPACE}}}style")
        sheet.text = style
        root.insert(0, sheet)
    else:
        root.set("viewBox", f"0 0 {root.attrib.pop('width')} {root.attrib.pop('height')}")
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: Any, name: str) -> None:
    """Keep shapes, text and their geometry: no style, link, script or data the page did not ask for."""
    tag = element.tag.removeprefix(f"{{{NAMESPACE}}}")
    if tag not in ALLOWED:
        raise LabError("the chart library drew something unexpected", expected=", ".join(ALLOWED), found=tag)
    for key in list(element.attrib):
        if not KEPT.fullmatch(key):
            del element.attrib[key]
    if "id" in element.attrib:
        element.set("id", f"{name}-{element.get('id')}")
    if "clip-path" in element.attrib:
        element.set("clip-path", element.get("clip-path").replace("url(#", f"url(#{name}-"))
    element[:] = [child for child in element if not _invisible(child)]
    for child in element:
        _clean(child, name)


def _invisible(element: Any) -> bool:
    return element.get("display") == "none" or element.get("d") in ("", "M0,0h0v0h0Z")
