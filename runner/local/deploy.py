"""Deploy a synthesised CDK assembly to the local cloud with boto3 alone, in about a second.

What `cdk bootstrap` and `cdk deploy` do for a stack with file assets: the bootstrap version
parameter, the assets bucket, the assets, then create or update the stack if its template differs.
"""

import io
import json
import time
import zipfile
from pathlib import Path

from botocore.exceptions import ClientError

from runner.errors import LabError
from runner.local.cloud import Cloud

QUALIFIER = "hnb659fds"
BOOTSTRAP_VERSION = "30"
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
# CloudFormation takes a longer template only from a bucket.
TEMPLATE_BODY_LIMIT = 51_200
DEPLOYED = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
# After these an update may follow; after any other end the stack has to be deleted first.
UPDATABLE = (*DEPLOYED, "UPDATE_ROLLBACK_COMPLETE")
STACK_LIMIT_S = 120


def deploy(cloud: Cloud, assembly_dir: Path | str, stack_name: str) -> dict[str, str]:
    """Create or update the stack if it is missing or differs; return its outputs."""
    assembly = Path(assembly_dir)
    template_file = assembly / f"{stack_name}.template.json"
    if not template_file.is_file():
        raise LabError(f"{assembly} holds no stack {stack_name}", expected=template_file.name)
    stack = _stack(cloud, stack_name)
    if stack and stack["StackStatus"] not in UPDATABLE:
        raise _failed(cloud, stack)
    template = template_file.read_text()
    # Asset keys are digests of their contents, so an equal template means equal assets.
    if not stack or stack["StackStatus"] not in DEPLOYED or _differs(cloud, stack_name, template):
        bucket = _bootstrap(cloud)
        _publish(cloud, assembly, stack_name)
        _apply(cloud, stack_name, _template_parameter(cloud, bucket, template), update=bool(stack))
        stack = _ended(cloud, stack_name)
        if stack["StackStatus"] not in DEPLOYED:
            raise _failed(cloud, stack)
    return {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])}


def deployed_template(cloud: Cloud, stack_name: str) -> dict | None:
    """Return the template as CloudFormation has it; None when there is no such stack."""
    if not _stack(cloud, stack_name):
        return None
    body = cloud.client("cloudformation").get_template(StackName=stack_name)["TemplateBody"]
    return json.loads(body) if isinstance(body, str) else json.loads(json.dumps(body))


def _stack(cloud: Cloud, stack_name: str) -> dict | None:
    try:
        return cloud.client("cloudformation").describe_stacks(StackName=stack_name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise


def _differs(cloud: Cloud, stack_name: str, template: str) -> bool:
    return deployed_template(cloud, stack_name) != json.loads(template)


def _bootstrap(cloud: Cloud) -> str:
    """Do the part of `cdk bootstrap` that a deployment needs; return the assets bucket."""
    cloud.client("ssm").put_parameter(
        Name=f"/cdk-bootstrap/{QUALIFIER}/version", Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True
    )
    bucket = f"cdk-{QUALIFIER}-assets-{cloud.account}-{cloud.region}"
    try:
        cloud.client("s3").create_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
            raise
    return bucket


def _publish(cloud: Cloud, assembly: Path, stack_name: str) -> None:
    """Upload the file assets that the bucket does not have."""
    s3 = cloud.client("s3")
    assets = json.loads((assembly / f"{stack_name}.assets.json").read_text())["files"]
    for asset in assets.values():
        source = assembly / asset["source"]["path"]
        for destination in asset["destinations"].values():
            bucket = destination["bucketName"]
            for pseudo, value in (("AccountId", cloud.account), ("Region", cloud.region)):
                bucket = bucket.replace(f"${{AWS::{pseudo}}}", value)
            if _has(s3, bucket, destination["objectKey"]):
                continue
            body = zip_folder(source) if asset["source"]["packaging"] == "zip" else source.read_bytes()
            s3.put_object(Bucket=bucket, Key=destination["objectKey"], Body=body)


def _has(s3, bucket: str, key: str) -> bool:
    try:
        s3.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
            return False
        raise
    return True


def zip_folder(folder: Path) -> bytes:
    """Zip a folder: same bytes for the same files, whatever their times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
                entry.external_attr = (file.stat().st_mode & 0xFFFF) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, file.read_bytes(), compresslevel=1)
    return buffer.getvalue()


def _template_parameter(cloud: Cloud, bucket: str, template: str) -> dict[str, str]:
    if len(template.encode()) <= TEMPLATE_BODY_LIMIT:
        return {"TemplateBody": template}
    key = "suc-template.json"
    cloud.client("s3").put_object(Bucket=bucket, Key=key, Body=template.encode())
    return {"TemplateURL": f"{cloud.endpoint}/{bucket}/{key}"}


def _apply(cloud: Cloud, stack_name: str, template: dict[str, str], *, update: bool) -> None:
    cloudformation = cloud.client("cloudformation")
    change = cloudformation.update_stack if update else cloudformation.create_stack
    try:
        change(StackName=stack_name, Capabilities=CAPABILITIES, **template)
    except ClientError as error:
        if "No updates are to be performed" not in error.response["Error"]["Message"]:
            raise


def _ended(cloud: Cloud, stack_name: str) -> dict:
    """Return the stack once it is no longer in progress."""
    end = time.monotonic() + STACK_LIMIT_S
    while time.monotonic() < end:
        stack = _stack(cloud, stack_name)
        if stack and not stack["StackStatus"].endswith("_IN_PROGRESS"):
            return stack
        time.sleep(0.02)
    raise LabError(f"stack {stack_name} is still in progress", expected=f"an end within {STACK_LIMIT_S} s")


def _failed(cloud: Cloud, stack: dict) -> LabError:
    """Return the error that names the resource which failed first, and why."""
    name = stack["StackName"]
    events = cloud.client("cloudformation").describe_stack_events(StackName=name)["StackEvents"]
    reasons = [
        f"{e['LogicalResourceId']} ({e['ResourceType']}): {e.get('ResourceStatusReason', 'no reason given')}"
        for e in reversed(events)
        if e["ResourceStatus"].endswith("_FAILED")
    ]
    return LabError(
        f"stack {name} is {stack['StackStatus']}",
        expected=" or ".join(DEPLOYED),
        found=reasons[0] if reasons else stack.get("StackStatusReason", "no failed resource is listed"),
        next_step=f"delete the stack {name}, or `runner local down` for an empty cloud",
    )
