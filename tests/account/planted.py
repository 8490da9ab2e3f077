"""A copy of an assembly under another stack name, with grants taken away or added."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.account.calls import FUNCTIONS


def copy(assembly: Path, stack: str, name: str, folder: Path) -> dict[str, Any]:
    """Copy the assembly of `stack` to `folder` as stack `name`; return the template to change."""
    for asset in assembly.glob("asset.*"):
        (folder / asset.name).symlink_to(asset)
    manifest = (
        (assembly / f"{stack}.assets.json").read_text().replace(f"{stack}.template", f"{name}.template")
    )
    (folder / f"{name}.assets.json").write_text(manifest)
    template = (assembly / f"{stack}.template.json").read_text().replace(f"{stack}-", f"{name}-")
    write(folder, name, json.loads(template))
    return json.loads(template)


def write(folder: Path, name: str, template: dict[str, Any]) -> None:
    """Write the template of a copied assembly."""
    (folder / f"{name}.template.json").write_text(json.dumps(template))


def add(template: dict[str, Any], who: str, action: str, resource: Any) -> None:
    """Grant one more action to a function's role."""
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    _statements(template, who).append(statement)


def take(template: dict[str, Any], who: str, action: str, key: str) -> None:
    """Take one action on one resource away from a function's role."""
    arn = arn_of(template, key)
    statements = _statements(template, who)
    split = [
        {"Effect": "Allow", "Action": one, "Resource": on}
        for statement in statements
        for one in _listed(statement["Action"])
        for on in _listed(statement["Resource"])
    ]
    kept = [s for s in split if (s["Action"], s["Resource"]) != (action, arn)]
    assert len(kept) == len(split) - 1
    statements[:] = kept


def arn_of(template: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the template's way of saying the ARN of what an output names."""
    return {"Fn::GetAtt": [template["Outputs"][key]["Value"]["Ref"], "Arn"]}


def _statements(template: dict[str, Any], who: str) -> list[dict[str, Any]]:
    resources = template["Resources"]
    function = resources[template["Outputs"][FUNCTIONS[who]]["Value"]["Ref"]]
    role = resources[function["Properties"]["Role"]["Fn::GetAtt"][0]]
    (policy,) = role["Properties"]["Policies"]
    return policy["PolicyDocument"]["Statement"]


def _listed(value: Any) -> Iterator[Any]:
    return iter(value if isinstance(value, list) else [value])
