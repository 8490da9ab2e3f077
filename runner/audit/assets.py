"""What a deployment leaves in the bootstrap bucket: shared with other apps, kept by design."""

import json
from pathlib import Path
from typing import Any

from runner.audit.ask import Asker
from runner.audit.finding import Seen, remnant
from runner.targets.accounts import Account

TYPE = "AWS::S3::Object"


def asset_objects(account: Account, template: dict[str, Any], assembly: Path | None) -> list[str]:
    """Return `bucket/key` of every asset that the template or the assembly's manifest names."""
    found = set()
    for resource in template.get("Resources", {}).values():
        for member in ("Code", "Content"):
            place = resource.get("Properties", {}).get(member)
            if isinstance(place, dict) and isinstance(place.get("S3Key"), str):
                found.add((_text(place["S3Bucket"]), place["S3Key"]))
    manifest = assembly / f"{account.stack}.assets.json" if assembly else None
    if manifest and manifest.is_file():
        for asset in json.loads(manifest.read_text())["files"].values():
            for destination in asset["destinations"].values():
                found.add((destination["bucketName"], destination["objectKey"]))
    return sorted(f"{_resolved(account, bucket)}/{key}" for bucket, key in found)


def describe(ask: Asker, name: str) -> Seen:
    """Say whether one asset is still in its bucket. Raises Refused."""
    bucket, _, key = name.partition("/")
    size = ask.once("s3", "HeadObject", Bucket=bucket, Key=key)["ContentLength"]
    return remnant(f"{size} bytes in the bootstrap bucket, until `cdk gc` or a lifecycle rule ends it", None)


def _text(bucket: Any) -> str:
    return bucket["Fn::Sub"] if isinstance(bucket, dict) else str(bucket)


def _resolved(account: Account, bucket: str) -> str:
    pseudo = {"AccountId": account.account, "Region": account.region, "Partition": "aws"}
    for name, value in pseudo.items():
        bucket = bucket.replace(f"${{AWS::{name}}}", value)
    return bucket
