"""Packages made by somebody who wants a pass that is none, or a fail that nobody sees."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from oracle.judge import judge_path
from oracle.source import NotAPackage
from oracle.strict_json import Malformed, load_lines, load_value, unique
from tests.oracle import reference
from tests.oracle.attacks import ATTACKS
from tests.oracle.bad_bytes import tar_of
from tests.oracle.builder import control, package_with
from tests.oracle.memory import codes, judge


@pytest.mark.parametrize("name", ATTACKS)
def test_what_was_written_to_be_overlooked_is_seen(name):
    story, change, told, verdict = ATTACKS[name]
    package = package_with(story)
    change(package.docs)
    files = package.render()
    report = judge(files)
    assert (sorted(codes(report)), report.verdict) == (told.split(), verdict)
    assert reference.judge(files)[0] == verdict


def test_a_trial_named_as_something_else_is_not_this_trial():
    """Names are compared as they stand: an execution of another trial may still run."""
    package = package_with(lambda p: control(p, "durable"))
    lines = package.docs["trials/control-durable/durable.jsonl"]
    execution = next(line for line in lines if line["read"] == "execution")
    text = execution["response"]["InputPayload"].replace("control-durable", "Control-durable")
    other = {"DurableExecutionArn": "other", "Status": "RUNNING"}
    next(line for line in lines if line["read"] == "executions")["response"]["DurableExecutions"].append(
        other
    )
    lines.append(
        {
            **execution,
            "of": "other",
            "request": {"DurableExecutionArn": "other"},
            "response": {**execution["response"], **other, "InputPayload": text},
        }
    )
    assert judge(package).verdict == "pass"


# -- JSON ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("depth, deep", [(64, False), (65, True), (600, True)])
def test_brackets_in_strings_hide_no_depth(depth, deep):
    """Each level opens beside a string that closes it, so that brackets alone look balanced at once."""
    text = b'["]",' * depth + b"1" + b',"["]' * depth
    if not deep:
        assert load_value(text)[0] == "]"
        return
    with pytest.raises(Malformed) as bad:
        load_value(text)
    assert bad.value.code == "J13"


def test_a_repeated_line_cannot_have_a_time_that_no_line_may_have():
    lines = b'{"at_ms":1,"of":""}\n{"at_ms":9007199254740991,"of":""}\n{"at_ms":9007199254740992,"of":""}\n'
    first, last, beyond = [value for _, value in load_lines(lines)]
    assert (first["at_ms"], last["at_ms"], beyond.code) == (1, 2**53 - 1, "J10")


# -- archives ------------------------------------------------------------------------------------------
FILES = sorted(package_with(control).render().items())
WHOLE = tar_of(FILES)
END = len(WHOLE.rstrip(b"\0")) // 512 * 512 + 512
HIDDEN = tar_of([("run.json", b"{}\n")])


def judged(data: bytes, folder):
    """The verdict and codes of an archive of these bytes, or 64 if it is no package."""
    (folder / "package.tar").write_bytes(data)
    try:
        report = judge_path(folder / "package.tar")
    except NotAPackage:
        return 64, set()
    return report.verdict, codes(report)


@pytest.mark.parametrize(
    "data",
    [
        WHOLE + b"garbage",
        WHOLE + HIDDEN,
        WHOLE[:END] + b"\xff" * 512 + HIDDEN,  # a broken header, over which other readers skip
        gzip.compress(WHOLE) + gzip.compress(HIDDEN),
    ],
    ids=["garbage", "archive", "after a broken header", "second gzip member"],
)
def test_an_archive_holds_nothing_beside_the_package(data, tmp_path):
    assert judged(data, tmp_path) == ("indeterminate", {"P11"})


@pytest.mark.parametrize(
    "data", [WHOLE, WHOLE + bytes(5_120), gzip.compress(WHOLE[:999]) + gzip.compress(WHOLE[999:])]
)
def test_zeros_and_members_of_gzip_are_no_matter(data, tmp_path):
    assert judged(data, tmp_path)[0] == "pass"


def test_a_damaged_archive_is_no_package(tmp_path):
    packed = gzip.compress(WHOLE)
    assert judged(packed + b"garbage!", tmp_path) == (64, set())
    assert judged(packed[:-4], tmp_path) == (64, set())
    assert judged(packed[:-6] + bytes([packed[-6] ^ 255]) + packed[-5:], tmp_path) == (64, set())
    for at in range(20, len(packed) - 8, len(packed) // 40):
        verdict, _ = judged(packed[:at] + bytes([packed[at] ^ 255]) + packed[at + 1 :], tmp_path)
        assert verdict in (64, "indeterminate")


def test_members_that_only_look_like_files_are_refused(tmp_path):
    def archive(*extra, format=tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=format) as tar:
            for name, data in FILES:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                for change in (change for path, change in extra if path == name):
                    change(info)
                tar.addfile(info, io.BytesIO(data) if info.isreg() else None)
        return judged(out.getvalue(), tmp_path)

    def link(info):
        info.type, info.linkname, info.size = tarfile.LNKTYPE, "protocol.json", 0

    assert archive() == ("pass", set())
    assert archive(("run.json", link)) == ("indeterminate", {"P12"})
    assert archive(("run.json", lambda info: setattr(info, "name", "run.json/"))) == (
        "indeterminate",
        {"P10", "P11"},
    )
    assert "P17" in archive(("template.json", lambda info: info.pax_headers.update(path="run.json")))[1]
    assert "P13" in archive(("template.json", lambda info: info.pax_headers.update(size="1")))[1]


def test_a_repeated_key_is_found_in_one_pass():
    class Counted(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.compared += 1
            return str.__eq__(self, other)

    pairs = [(Counted(f"k{n}"), n) for n in range(2_000)] + [(Counted("k1999"), 0)]
    with pytest.raises(Malformed) as bad:
        unique(pairs)
    assert bad.value.args[-1] == "key 'k1999' is repeated"
    assert Counted.compared < 4 * len(pairs)
