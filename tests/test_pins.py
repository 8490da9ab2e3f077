"""Dependencies are pinned, and nothing in the repository names a download address."""

import re
import subprocess
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((PROJECT / "pyproject.toml").read_text())
EXACT = re.compile(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*")


def test_every_direct_and_transitive_dependency_is_pinned_exactly():
    direct = CONFIG["project"]["dependencies"] + CONFIG["dependency-groups"]["dev"]
    transitive = CONFIG["tool"]["uv"]["constraint-dependencies"]
    assert len(direct) > 10 and len(transitive) > 20
    assert [name for name in direct + transitive if not EXACT.fullmatch(name)] == []


def test_no_lock_file_is_tracked():
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "README.md" in tracked
    assert [name for name in tracked if name.endswith((".lock", "package-lock.json"))] == []


# Spelled in halves, so that this file does not name one itself.
REGISTRIES = [".".join(halves) for halves in (("pypi", "org"), ("npmjs", "org"), ("pythonhosted", "org"))]


def test_no_tracked_text_names_a_registrys_host():
    for host in REGISTRIES:
        found = subprocess.run(
            ["git", "grep", "-lF", host], cwd=PROJECT, capture_output=True, text=True, check=False
        )
        assert found.stdout.splitlines() == []
