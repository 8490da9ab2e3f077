"""The leak scan: whatever the replacement does not know must end in a refusal, never in a publication."""

import base64
import gzip
import hashlib
import io
import json
import tarfile

import pytest

from runner.redact.archive import pack
from runner.redact.redaction import redact
from runner.redact.replace import Refused
from runner.redact.scan import Scan
from tests.oracle.builder import package_with, reindex, write
from tests.redact import support
from tests.redact.support import ACCOUNT, ARN, KEY, MACHINE, leaky_package, names, read_files, verdict_of

VALUES = [
    ("account-id", ACCOUNT),
    ("access-key-id", KEY.lower()),
    ("secret", support.TOKEN.lower()),
    ("stack-id", support.STACK_UUID.replace("-", "")),
    ("user-name", "anna"),
    ("host-name", "annas-laptop"),
    ("local-path", "/root"),
    ("local-path", "/home/anna"),
]


def b64(text: str) -> str:
    """Return the text in base64."""
    return base64.b64encode(text.encode()).decode()


def rules(text: str) -> set[str]:
    """Return what the scan finds in one text file."""
    return {leak.rule for leak in Scan(VALUES, ["999900000001"]).files({"file.json": text.encode()})}


# -- leaks that the replacement does not undo: planted in a package, each must be refused ----------
HIDDEN = {
    "hex": ARN.encode().hex(),
    "hex at an odd digit": "a" + ARN.encode().hex(),
    "gzip in base64": base64.b64encode(gzip.compress(ARN.encode())).decode(),
    "utf-16 in base64": base64.b64encode(ARN.encode("utf-16-le")).decode(),
    "base64 on two lines": "\n".join((b64(ACCOUNT * 2)[:8], b64(ACCOUNT * 2)[8:])),
    "html entities": "".join(f"&#{ord(digit)};" for digit in ACCOUNT),
    "python escapes": "".join(f"\\x{ord(digit):02x}" for digit in ACCOUNT),
    "octal escapes": "".join(f"\\{ord(digit):03o}" for digit in ACCOUNT),
    "full-width digits": "".join(chr(ord(digit) + 0xFEE0) for digit in ACCOUNT),
    "zero-width joiners": "\u200b".join(ACCOUNT),
    "glued access key": f"x{KEY}",
    "spaced by threes": " ".join(ACCOUNT[i : i + 3] for i in range(0, 12, 3)),
    "digit by digit": ", ".join(ACCOUNT),
    "sha256": hashlib.sha256(ACCOUNT.encode()).hexdigest(),
    "md5 in base64 of its digits": b64(hashlib.md5(ACCOUNT.encode()).hexdigest()),
    "lower-case access key": KEY.lower(),
    "sha256 in base64": base64.b64encode(hashlib.sha256(ACCOUNT.encode()).digest()).decode(),
    "hex dump": ":".join(f"{byte:02x}" for byte in ACCOUNT.encode()),
    "base64 over two strings": [b64(ACCOUNT * 2)[:8], b64(ACCOUNT * 2)[8:]],
    "character codes": list(ACCOUNT.encode()),
    "base32": base64.b32encode(f"<{ARN}>".encode()).decode(),
    "quoted-printable": "".join(f"={byte:02X}" for byte in ACCOUNT.encode()),
    "javascript escapes": "".join(f"\\u{{{ord(digit):x}}}" for digit in ACCOUNT),
    "arabic digits": "".join(chr(0x660 + int(digit)) for digit in ACCOUNT),
}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_planted_leak_is_refused_and_leaves_nothing(tmp_path, hidden):
    package = leaky_package(tmp_path / "in", {"planted": hidden}, build=package_with)
    with pytest.raises(Refused) as refusal:
        redact(package, tmp_path / "out", MACHINE, verdict_of)
    assert refusal.value.exit_code == 2
    assert names(tmp_path) == ["in"]
    assert "environment.json" in str(refusal.value)
    assert ACCOUNT not in str(refusal.value) and KEY not in str(refusal.value)


def test_a_leak_in_a_file_that_is_not_json_is_refused(tmp_path):
    files = read_files(leaky_package(tmp_path / "in"))
    files["protocol.toml"] += f"# run on {ACCOUNT}\n".encode()
    with pytest.raises(Refused, match="account-id in .*protocol.toml line"):
        redact(write(reindex(files), tmp_path / "bad"), tmp_path / "out", MACHINE, verdict_of)
    assert not (tmp_path / "out").exists()


def test_a_replacement_that_does_nothing_is_caught_by_the_scan_alone(tmp_path, monkeypatch):
    """The two share no code: break the one, and the other refuses every kind of value."""
    from runner.redact.replace import Redactor

    monkeypatch.setattr(Redactor, "text", lambda _self, raw: (raw, {}))
    with pytest.raises(Refused, match="account-id"):
        redact(leaky_package(tmp_path / "in"), tmp_path / "out", MACHINE, verdict_of)


@pytest.mark.parametrize("planted", support.D28.items(), ids=support.D28.keys())
def test_d28_the_scan_alone_finds_every_form(planted):
    key, value = planted
    assert "account-id" in rules(json.dumps({key: value}))


def test_a_gatherer_that_finds_nothing_is_caught_by_the_shapes_alone(tmp_path, monkeypatch):
    from runner.redact import redaction
    from runner.redact.known import Known

    monkeypatch.setattr(redaction, "gather", lambda *_: Known(()))
    with pytest.raises(Refused, match="account-shape"):
        redact(leaky_package(tmp_path / "in"), tmp_path / "out", MACHINE, verdict_of)


# -- known values -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", set()),
        ("nothing to see", set()),
        (ACCOUNT, {"account-id"}),
        (f"18{ACCOUNT}00", {"account-id"}),
        ("1234-5678-9012", {"account-id"}),
        (json.dumps(json.dumps(json.dumps({"a": "\u00e9" + ACCOUNT}))), {"account-id"}),
        ("%2531%2532%2533%2534%2535%2536%2537%2538%2539%2530%2531%2532", {"account-id"}),
        (b64(f"x{ACCOUNT}"), {"account-id"}),
        (b64(b64(f"xy{ACCOUNT}")), {"account-id"}),
        (b64(ACCOUNT).replace("M", "%4d"), {"account-id"}),
        (KEY.lower(), {"access-key-id", "access-key-shape"}),
        (KEY, {"access-key-id", "access-key-shape"}),
        (support.TOKEN.replace("/", "%2F").replace("=", "\\u003d"), {"secret"}),
        (support.STACK_UUID.upper(), {"stack-id"}),
        (support.STACK_UUID.replace("-", ""), {"stack-id"}),
        ("%2F" + support.STACK_UUID, {"stack-id"}),
        ("by Anna, at Annas-Laptop", {"user-name", "host-name"}),
        ("savanna hannah", set()),
        ("/root/.aws", {"local-path"}),
        ("arn:aws:iam::000000000000:root https://a/root", set()),
        ("cwd%2Fhome%2Fanna", {"local-path", "user-name"}),
    ],
)
def test_known_values_are_found_in_every_form(text, found):
    assert rules(text) == found


# -- shapes of values that nobody told it about -----------------------------------------------------
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("arn:aws-us-gov:iam::555566667777:role/x", {"account-shape"}),
        ("arn%3Aaws%3Aiam%3A%3A555566667777%3Arole", {"account-shape"}),
        ("arn:aws:iam::999900000001:role/x and arn:aws:iam::000000000000:root", set()),
        ("https://sqs.eu-west-1.amazonaws.com/555566667777/q", {"account-shape"}),
        ("cdk-hnb659fds-assets-555566667777-us-gov-west-1", {"account-shape"}),
        ('"accountId":"555566667777"', {"account-shape"}),
        ("1790000000000 and 179000000000", set()),
        ("ASIAY34FZKBOKMUTVV7A", {"access-key-shape"}),
        (b64("ASIAY34FZKBOKMUTVV7A"), {"access-key-shape"}),
        ("AIDA-REDACTED-1 AKIA-REDACTED-12", set()),
        ("arn:aws:cloudformation:us-east-1:000000000000:stack/S/" + support.REQUEST_UUID, {"stack-id-shape"}),
        ("X-Amz-Signature=" + support.SIGNATURE, {"signature-shape"}),
        ("X-Amz-Signature=signature-1&X-Amz-Security-Token=secret-1", set()),
        ("X-Amz-Security-Token=" + support.TOKEN[:20], {"secret-shape"}),
        ("/Users/luigi/x", {"local-path-shape"}),
        ("http://localhost:4566/", {"local-endpoint-shape"}),
    ],
)
def test_shapes_are_found_unless_they_are_pseudonyms(text, found):
    assert {leak.rule for leak in Scan([], ["999900000001"]).files({"f": text.encode()})} == found


# -- archives ---------------------------------------------------------------------------------------
def test_an_archive_is_scanned_member_by_member_and_in_its_headers():
    assert Scan(VALUES, []).files({"a.tar.gz": pack("p", {"x.json": b"{}\n"})}) == []
    (leak,) = Scan(VALUES, []).files({"a.tar.gz": pack("p", {"x.json": b"{}\n" + ACCOUNT.encode()})})
    assert (leak.rule, leak.place) == ("account-id", "p/x.json")
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        member = tarfile.TarInfo("x.json")
        member.uname = "anna"
        tar.addfile(member)
    found = {leak.rule for leak in Scan(VALUES, []).files({"a.tar.gz": raw.getvalue()})}
    assert found == {"user-name", "archive"}  # the owner, and the time that tarfile puts into the gzip header


def test_bytes_beside_the_packed_ones_are_a_leak():
    packed = pack("p", {"x.json": b"{}\n"})
    (leak,) = Scan(VALUES, []).files({"a.tar.gz": packed + gzip.compress(b"", mtime=0)})
    assert leak.rule == "archive"


def test_a_file_name_that_leaks_is_reported_without_it():
    leaks = Scan(VALUES, []).files({f"trials/{ACCOUNT}.json": ACCOUNT.encode()})
    assert {leak.rule for leak in leaks} == {"account-id"}
    assert ACCOUNT not in str(leaks)


def test_more_layers_than_can_be_looked_through_are_a_leak():
    text = ACCOUNT
    for _ in range(600):
        text = text.replace("%", "%25") if "%" in text else "%31" + text[1:]
    assert "encoding" in rules(text)
