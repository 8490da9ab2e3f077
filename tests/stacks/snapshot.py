"""The reviewed template as YAML. `uv run python -m tests.stacks.snapshot` writes it again."""

import re
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests.stacks.synthesis import Assembly, synthesise

SNAPSHOT = Path(__file__).parent / "snapshot" / "study-1.yaml"
REGENERATE = "uv run python -m tests.stacks.snapshot"

_HEADER = f"""\
# The template of Study 1 as a reviewer reads it. Digests are replaced: they change with every line of code.
# Written by: {REGENERATE}
"""

# Digests: of an asset (64 hex and .zip), of a version's configuration (32 hex after the id), of the protocol.
_DIGESTS = (
    (re.compile(r"^[0-9a-f]{64}\.zip$"), "<asset>.zip"),
    (re.compile(r"(?<=CurrentVersion)[0-9A-F]{8}[0-9a-f]{32}"), "<configuration>"),
    (re.compile(r"^[0-9a-f]{64}$"), "<sha256>"),
)


def readable(assembly: Assembly) -> str:
    """Return the template as YAML in its own order, short lists on one line, digests replaced."""
    template = without_digests(assembly.template)
    return _HEADER + yaml.safe_dump(template, sort_keys=False, default_flow_style=None, width=110)


def without_digests(value: Any) -> Any:
    """Return a template with every digest replaced by a placeholder."""
    if isinstance(value, dict):
        return {without_digests(k): without_digests(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_digests(v) for v in value]
    if isinstance(value, str):
        for pattern, placeholder in _DIGESTS:
            value = pattern.sub(placeholder, value)
    return value


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        text = readable(synthesise("study-1", Path(folder)))
    SNAPSHOT.parent.mkdir(exist_ok=True)
    SNAPSHOT.write_text(text)
