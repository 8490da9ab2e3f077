"""A package that gives everything away, and a machine that is not this one."""

import base64
import hashlib
import json
from pathlib import Path

from runner.redact.known import Machine
from tests.oracle.builder import control, package_with

ACCOUNT = "123456789012"
STACK_UUID = "7b1c2d30-9f0e-11ee-8a4b-0e5f6a7b8c9d"
REQUEST_UUID = "2f9d5d0c-3a51-4f0b-9f6e-1f2f6c0d4a11"
KEY, ROLE_ID = "AKIAIOSFODNN7EXAMPLE", "AROAJQABLZS4A3QDU576Q"
SIGNATURE = hashlib.sha256(b"a signature").hexdigest()
TOKEN = "IQoJb3JpZ2luX2VjEPj//////////wEaCXVzLWVhc3QtMSJIMEYCIQ=="
MACHINE = Machine(
    "mario.rossi", ("marios-laptop.local", "marios-laptop"), ("/home/mario.rossi", "/srv/lab"), {}
)

ARN = f"arn:aws:sqs:us-east-1:{ACCOUNT}:durable.fifo"
QUEUE_URL = f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/durable.fifo"
BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-us-east-1"
# CASES D28: every form in which an account id was seen to survive a redaction by pattern.
D28 = {
    "arn": ARN,
    "gov": f"arn:aws-us-gov:iam::{ACCOUNT}:role/lab",
    "china": f"arn:aws-cn:lambda:cn-north-1:{ACCOUNT}:function:lab",
    "no region, no account": f"arn:aws:s3:::{BUCKET}",
    "queue": QUEUE_URL,
    "bucket": BUCKET,
    "escaped": json.dumps({"outer": json.dumps({"arn": ARN, "url": QUEUE_URL})}),
    "in a log line": f"START {json.dumps(json.dumps({'a': ARN}))} END",
    "url": "arn%3Aaws%3Asqs%3Aus-east-1%3A" + ACCOUNT + "%3Aq",
    "url twice": "arn%253Aaws%253Asqs%253Aus-east-1%253A" + ACCOUNT,
    "percent digits": "".join(f"%{ord(digit):02x}" for digit in ACCOUNT),
    "unicode escapes": "".join(f"\\u{ord(digit):04x}" for digit in ACCOUNT),
    "base64": base64.b64encode(ARN.encode()).decode(),
    "base64 after one": base64.b64encode(b"x" + ARN.encode()).decode(),
    "base64 after two": base64.b64encode(b"xy" + ARN.encode()).decode(),
    "base64 urlsafe, unpadded": base64.urlsafe_b64encode(b"\xff\xfe\xfd" + ARN.encode()).decode().rstrip("="),
    "base64 glued": "token-" + base64.b64encode(QUEUE_URL.encode()).decode(),
    "base64 in json in base64": base64.b64encode(
        json.dumps({"p": base64.b64encode(ARN.encode()).decode()}).encode()
    ).decode(),
    "console": "1234-5678-9012",
    "number": int(ACCOUNT),
    f"key {ACCOUNT}": "value",
}


def leaky_package(parent: Path, extra: dict | None = None, build=None) -> Path:
    """Write a valid package whose environment holds an account and `extra`."""
    built = build() if build else package_with(lambda package: control(package, "durable"))
    text = json.dumps({path: doc for path, doc in built.docs.items() if path != "protocol.toml"})
    moved = json.loads(text.replace("000000000000", ACCOUNT))
    built.docs.update(moved)
    environment = built.docs["environment.json"]
    environment["account"] = ACCOUNT
    environment["extra"] = extra or {}
    return built.write(parent)


def read_files(package: Path) -> dict[str, bytes]:
    """Return every file of a package by path."""
    return {f.relative_to(package).as_posix(): f.read_bytes() for f in package.rglob("*") if f.is_file()}


def names(folder: Path) -> list[str]:
    """Return what lies in a folder, hidden things included."""
    return sorted(found.name for found in folder.iterdir())


def verdict_of(_package: Path) -> dict:
    """A judge that says the same of everything, for tests in which the oracle is not the point."""
    return {"verdict": "pass", "integrity": {"ok": True, "findings": []}, "findings": [], "trials": []}
