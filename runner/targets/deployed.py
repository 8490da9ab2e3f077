"""Whether what is deployed is what this code synthesises: a trial on anything else proves nothing of it."""

import json
from pathlib import Path
from typing import Any

from runner.errors import UsageError

SHOWN = 3


def differences(deployed: Any, synthesised: dict[str, Any]) -> list[str]:
    """Return what differs between two templates, named by section and logical id."""
    if not isinstance(deployed, dict):
        return ["the deployed template is not JSON"]
    found = []
    for section in sorted(deployed.keys() | synthesised.keys()):
        ours, theirs = synthesised.get(section), deployed.get(section)
        if ours == theirs:
            continue
        if not isinstance(ours, dict) or not isinstance(theirs, dict):
            found.append(section)
            continue
        for name in sorted(ours.keys() | theirs.keys()):
            if name not in theirs:
                found.append(f"{section}.{name} is not deployed")
            elif name not in ours:
                found.append(f"{section}.{name} is deployed and not synthesised")
            elif ours[name] != theirs[name]:
                found.append(f"{section}.{name} differs")
    return found


def require_synthesised(client: Any, stack: str, assembly: Path) -> None:
    """Refuse a stack whose deployed template is not the assembly's. Raises UsageError."""
    body = client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    synthesised = json.loads((assembly / f"{stack}.template.json").read_text())
    found = differences(body, synthesised)
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise UsageError(
            f"stack {stack} was deployed from other code than this",
            expected="the template that this code synthesises",
            found="; ".join(found[:SHOWN]) + more,
            next_step="`cdk deploy` this code, or check out the commit that was deployed",
        )
