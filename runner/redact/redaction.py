"""From a package to its public copy, or to a refusal that leaves nothing behind.

Order matters: everything is made and scanned in memory and in a private folder; the first byte beside `out`
is written after the scan found nothing and the oracle said the same of both packages.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import UsageError
from runner.packages import Source
from runner.records import canonical
from runner.redact import manifest
from runner.redact.archive import pack
from runner.redact.known import Known, Machine, gather
from runner.redact.manifest import INDEX, LABEL, Rewritten, label
from runner.redact.replace import Redactor, Refused
from runner.redact.scan import Scan
from runner.redact.source import documents, read_package
from runner.runs.freeze import Freezer, Package

Judge = Callable[[Path], dict[str, Any]]
SHOWN = 20


@dataclass(frozen=True)
class Redacted:
    """What was published: where, under which identity, and how often each rule replaced something."""

    out: Path
    archive: str
    id: str
    original_id: str
    replaced: dict[str, int]
    # None for an addendum, which nobody judges.
    verdict: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints (on this machine alone; it names the original)."""
        return {
            "out": str(self.out),
            "archive": self.archive,
            "manifest": manifest.NAME,
            "package" if self.verdict else "addendum": {"id": self.id, "original_id": self.original_id},
            "replaced": self.replaced,
            "verdict": self.verdict,
        }


def redact(package: Path, out: Path, machine: Machine, judge: Judge) -> Redacted:
    """Publish a redacted copy of `package` as the new folder `out`.

    Raises UsageError for bad input, before anything is written, and Refused when a value could not be removed
    or the verdict of the copy is another.
    """
    check_out(package, out)
    source = read_package(package)
    redactor = Redactor(gather(lines(source), machine))
    files, replaced = rewritten(source, redactor)
    name = f"{_study(files)}-evidence.tar.gz"
    with tempfile.TemporaryDirectory(prefix="redact-") as private:
        frozen = _freeze(files, Path(private))
        index = (frozen.path / INDEX).read_bytes()
        identity = frozen.id
        outputs = {
            name: pack(identity, {INDEX: index, **{path: file.data for path, file in files.items()}}),
            manifest.NAME: manifest.build(identity, files, index_entry(source, index)),
        }
        scan(outputs, redactor, redactor.known.spellings())
        (Path(private) / name).write_bytes(outputs[name])
        verdict = _same_verdict(judge(package), judge(Path(private) / name))
    publish(out, outputs)
    return Redacted(out, name, identity, source.id, dict(sorted(replaced.items())), verdict)


def check_out(package: Path, out: Path) -> None:
    """Refuse a folder that cannot be made, before anything else."""

    def refuse(expected: str, found: str) -> UsageError:
        return UsageError(
            f"--out {out} cannot be used", expected=expected, found=found, next_step="choose another"
        )

    if out.exists() or out.is_symlink():
        raise refuse("a folder that does not exist yet", "one that does")
    if not out.parent.is_dir():
        raise refuse("a new folder in an existing one", "no parent folder")
    if not os.access(out.parent, os.W_OK):
        raise refuse("a new folder in a writable one", f"{out.parent} is not writable")
    if out.resolve().is_relative_to(package.resolve()):
        raise refuse("a folder outside the package", "one inside it")


def lines(source: Source) -> list[str]:
    """Return every line that is looked at for known values."""
    text = "\n".join(data.decode("utf-8", "replace") for _, data in source.files.values())
    return [*source.files, *text.split("\n")]


def _check_paths(source: Source, known: Known) -> None:
    """Trial ids are ours and random; a path that holds a known value was made by other hands."""
    bad = [number for number, path in enumerate(sorted(source.files), 1) if known.find(path)]
    if bad:
        raise Refused(
            "the name of a file holds a known value",
            expected="file names that name nobody",
            found=f"{len(bad)} that do, the first is entry {bad[0]} of the index",
            next_step="run the trial again; a package's paths are part of its evidence and are not renamed",
        )


def rewritten(source: Source, redactor: Redactor) -> tuple[dict[str, Rewritten], Counter[str]]:
    """Return every file of the copy, its label included, and how often each rule replaced something.

    Raises Refused when the path of a file holds a known value.
    """
    _check_paths(source, redactor.known)
    files = {path: _rewritten(source, path, redactor) for path in source.files}
    replaced = Counter(rule for f in files.values() for _, rule in f.replaced.elements())
    if replaced:
        files[LABEL] = label(dict(replaced))
    return files, replaced


def _rewritten(source: Source, path: str, redactor: Redactor) -> Rewritten:
    role, data = source.files[path]
    log: Counter[tuple[str, str]] = Counter()
    found = documents(path, data)
    if found:
        data = b"".join(canonical(redactor.value(value, pointer, log)) for pointer, value in found)
    # Anything else (protocol.toml) is published as frozen or, if the scan finds a value in it, not at all.
    return Rewritten(role, source.sha256(path), data, log)


def _study(files: dict[str, Rewritten]) -> str:
    """Return the protocol's name, which becomes a file name and therefore must be a plain one."""
    run = json.loads(files["run.json"].data) if "run.json" in files else None
    name = run.get("protocol") if isinstance(run, dict) else None
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise UsageError(
            "the package does not say which protocol it ran",
            expected="run.json with a member protocol like study-1",
            found="none",
            next_step="python -m oracle judge PACKAGE",
        )
    return name


def _freeze(files: dict[str, Rewritten], folder: Path) -> Package:
    freezer = Freezer(folder)
    for path, file in files.items():
        freezer.add(path, file.role, file.data)
    return freezer.publish()


def index_entry(source: Source, index: bytes) -> Rewritten:
    """The index is rebuilt, not redacted: it changes where a listed file changed."""
    changed = hashlib.sha256(index).hexdigest() != source.id
    return Rewritten("index", source.id, index, Counter({("/files", "index"): 1} if changed else {}))


def scan(outputs: dict[str, bytes], redactor: Redactor, values: list[tuple[str, str]]) -> None:
    """Refuse what would be published if any of the (rule, value) pairs, or a shape of one, is left in it."""
    leaks = Scan(values, redactor.pseudonyms.given.values()).files(outputs)
    if leaks:
        more = f" and {len(leaks) - SHOWN} more" if len(leaks) > SHOWN else ""
        raise Refused(
            "the leak scan found what must not be published; nothing was written",
            expected="no known value and no shape of one, in any encoding",
            found="; ".join(map(str, leaks[:SHOWN])) + more,
            next_step="evidence/REDACTION.md says which encodings are replaced and which are refused",
        )


def _same_verdict(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the verdict that both packages get. Raises Refused when they differ in any judgement."""
    first, second = _judgement(before), _judgement(after)
    if first != second:
        raise Refused(
            "redaction would change what the oracle says; nothing was written",
            expected=json.dumps(first),
            found=json.dumps(second),
            next_step="see which value of the evidence the oracle relies on in the package's findings",
        )
    return before["verdict"]


def _judgement(verdict: dict[str, Any]) -> dict[str, Any]:
    def codes(findings: list[dict[str, Any]]) -> list[str]:
        return sorted(finding["code"] for finding in findings)

    return {
        "verdict": verdict["verdict"],
        "integrity": codes(verdict["integrity"]["findings"]),
        "findings": codes(verdict["findings"]),
        "trials": [
            {**{key: value for key, value in trial.items() if key not in ("findings", "belief")},
             "findings": codes(trial["findings"])}
            for trial in verdict["trials"]
        ],
    }  # fmt: skip


def publish(out: Path, outputs: dict[str, bytes]) -> None:
    """Write beside `out` and rename: the folder appears whole or not at all."""
    staging = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        for name, data in outputs.items():
            (staging / name).write_bytes(data)
        staging.chmod(0o755)
        staging.rename(out)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
