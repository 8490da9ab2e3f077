"""Bad packages whose badness is in the bytes: index, layout and JSON. The P and J codes."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.builder import control, package_with
from tests.oracle.frozen import encode, reindex

QUEUES = "trials/control-conventional/queues.jsonl"
TRIAL = "trials/control-conventional/trial.json"


@dataclass
class Bad:
    """Files as they lie there; `links` point elsewhere, `folder` is the package's own name, `tar` lists raw
    members.
    """

    files: dict[str, bytes]
    links: dict[str, str] = field(default_factory=dict)
    folder: str = "package"
    tar: list[tuple[str, bytes]] | None = None

    def write(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        if self.tar is not None:
            (root / "package.tar").write_bytes(tar_of(self.tar))
            return
        for path, data in self.files.items():
            target = root / self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        for path, target in self.links.items():
            (root / self.folder / path).symlink_to(target)


def tar_of(members: list[tuple[str, bytes]]) -> bytes:
    """A tar with fixed metadata, so that it is the same bytes every time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _good() -> dict[str, bytes]:
    return package_with(control).render()


def _index(change) -> Bad:
    """A package whose index alone is changed, after it was true."""
    files = _good()
    index = json.loads(files["index.json"])
    change(index)
    return Bad({**files, "index.json": encode(index)})


def _file(path, edit) -> Bad:
    """One file's bytes edited, under a true index."""
    files = _good()
    return Bad(reindex({**files, path: edit(files[path])}))


def _touched(path, edit) -> Bad:
    """One file's bytes edited behind the index's back."""
    files = _good()
    return Bad({**files, path: edit(files[path])})


def _first(name, value):
    return lambda index: index["files"][0].update({name: value})


def _only_index() -> Bad:
    return Bad({"index.json": encode({"format": "suc-evidence", "version": 1, "files": []})})


def _climbing(index):
    index["files"].insert(0, {**index["files"][0], "path": "../escape.json"})


def _twice(index):
    index["files"].insert(1, dict(index["files"][0]))


def _huge(index):
    index["files"][0]["size"] = 2**40


def _case_colliding() -> Bad:
    package = package_with(lambda p: control(p, trial_id="control"), lambda p: control(p, trial_id="Control"))
    return Bad({}, tar=sorted(package.render().items()))


def _linked() -> Bad:
    files = _good()
    data = files.pop("template.json")
    return Bad(
        {**files, "index.json": reindex({**files, "template.json": data})["index.json"]},
        links={"template.json": "protocol.json"},
    )


def _line(old: bytes, new: bytes):
    """Replace once, in the first line."""
    return lambda data: data.replace(old, new, 1)


DEPTH = b"[" * 70 + b"]" * 70
BYTES = {
    "P01": (
        "index_not_canonical",
        lambda: _touched("index.json", lambda data: data.replace(b'"version":1', b'"version": 1')),
    ),
    "P02": ("another_format", lambda: _index(lambda index: index.update(format="zip-evidence"))),
    "P03": ("version_two", lambda: _index(lambda index: index.update(version=2))),
    "P04": ("extra_member", lambda: _index(lambda index: index.update(comment="hello"))),
    "P05": ("empty_index", _only_index),
    "P06": ("not_sorted", lambda: _index(lambda index: index["files"].reverse())),
    "P07": ("listed_twice", lambda: _index(_twice)),
    "P08": ("climbing", lambda: _index(_climbing)),
    "P09": ("case_colliding", _case_colliding),
    "P10": (
        "missing",
        lambda: Bad({path: data for path, data in _good().items() if path != "template.json"}),
    ),
    "P11": ("extra", lambda: Bad({**_good(), "notes.txt": b"hello\n"})),
    "P12": ("linked", _linked),
    "P13": ("one_byte_more", lambda: _touched("template.json", lambda data: data + b"\n")),
    "P14": ("one_byte_changed", lambda: _touched("template.json", _line(b"lambdas", b"lambdaz"))),
    "P15": ("too_large", lambda: _index(_huge)),
    "P16": ("another_name", lambda: Bad(_good(), folder="0" * 64)),
    "P17": ("member_twice", lambda: Bad({}, tar=[*sorted(_good().items()), ("run.json", b"{}\n")])),
    "P18": ("member_outside", lambda: Bad({}, tar=[*sorted(_good().items()), ("../escape.json", b"{}\n")])),
    "P19": ("role_elsewhere", lambda: _index(_first("role", "ledger"))),
    "J01": ("byte_order_mark", lambda: _file(TRIAL, lambda data: b"\xef\xbb\xbf" + data)),
    "J02": ("not_utf8", lambda: _file(QUEUES, _line(b'"of":"https', b'"of":"\xff\xfe'))),
    "J03": ("half_a_value", lambda: _file(TRIAL, lambda data: data[:-3] + b"\n")),
    "J04": ("half_a_last_line", lambda: _file(QUEUES, lambda data: data[:-40])),
    "J05": ("crlf", lambda: _file(QUEUES, lambda data: data.replace(b"\n", b"\r\n"))),
    "J06": ("blank_line", lambda: _file(QUEUES, lambda data: data + b"\n")),
    "J07": ("key_twice", lambda: _file(QUEUES, _line(b'{"at_ms":', b'{"at_ms":1,"at_ms":'))),
    "J08": ("not_a_number", lambda: _file(QUEUES, _line(b'"page":1', b'"page":NaN'))),
    "J09": ("float", lambda: _file(QUEUES, _line(b'"page":1', b'"page":1.0'))),
    "J10": ("too_large_an_integer", lambda: _file(QUEUES, _line(b'"page":1', b'"page":9007199254740992'))),
    "J11": ("lone_surrogate", lambda: _file(QUEUES, _line(b'"of":"https', b'"of":"\\ud800'))),
    "J12": ("a_space", lambda: _file(QUEUES, _line(b'"page":1', b'"page": 1'))),
    "J13": ("too_deep", lambda: _file(QUEUES, _line(b'"marker_in":null', b'"marker_in":' + DEPTH))),
}
