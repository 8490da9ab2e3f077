"""Reads who may do what out of a template, and tells what breaks the lab's access rules.

Every allowed pair of action and resource is a grant. Whatever this reader does not understand is
a violation too, so that a new kind of policy cannot slip past it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runner.names import Output

CALLERS = ("conventional", "durable")

# Actions that remove an item, or can.
DELETING = re.compile(r"dynamodb:(Delete|BatchWrite|PartiQLDelete|ExecuteStatement|BatchExecute)", re.I)

# The wildcard resources that the service leaves no way around: who, on what, and why.
WILDCARDS = {
    # Executions belong to a version whose number is not known before the function exists.
    ("durable", "DurableFunction.Arn:*"): {
        "lambda:CheckpointDurableExecution",
        "lambda:GetDurableExecutionState",
    },
}

FUNCTIONS = {
    Output.PROVIDER_FUNCTION: "provider",
    Output.RELEASE_FUNCTION: "release",
    Output.CONVENTIONAL_FUNCTION: "conventional",
    Output.DURABLE_FUNCTION: "durable",
}


@dataclass(frozen=True, order=True)
class Grant:
    """One function's role may do one action on one resource, named by the stack's output keys."""

    who: str
    action: str
    resource: str


def violations(template: dict[str, Any]) -> list[str]:
    """Return what breaks the access rules, one sentence each; empty means none."""
    found = [*_not_understood(template)]
    for grant in grants(template):
        found += [f"{grant.who}: {rule} ({grant.action} on {grant.resource})" for rule in _broken(grant)]
    return found


def grants(template: dict[str, Any]) -> list[Grant]:
    """Return every allowed action and resource of every function's role, sorted."""
    names, who = _names(template), _role_owners(template)
    return sorted(
        Grant(owner, action, _resource(resource, names))
        for owner, statement in _statements(template, who)
        if statement["Effect"] == "Allow"
        for action in _listed(statement.get("Action", "*"))
        for resource in _listed(statement.get("Resource", "*"))
    )


def _broken(grant: Grant) -> Iterator[str]:
    """Yield the rules that one grant breaks."""
    service = grant.action.split(":")[0].lower()
    if "*" in grant.action:
        yield "wildcard action"
    if "*" in grant.resource and grant.action not in WILDCARDS.get((grant.who, grant.resource), ()):
        yield "wildcard resource without a reason"
    if DELETING.match(grant.action):
        yield "may delete an item"
    if service in ("dynamodb", "*"):
        if _on(grant, Output.LEDGER_TABLE) and grant.who != "provider":
            yield "touches the ledger"
        if _on(grant, Output.LEDGER_TABLE) and grant.action != "dynamodb:PutItem":
            yield "may do more to the ledger than put"
        if _on(grant, Output.BARRIER_TABLE) and grant.who in CALLERS:
            yield "sees the barrier"
    if service in ("lambda", "*") and "invoke" in grant.action.lower():
        if grant.who not in CALLERS:
            yield "may invoke a function"
        elif grant.resource != f"{Output.PROVIDER_FUNCTION}.Arn":
            yield "may invoke more than the provider"
    if grant.action == "logs:CreateLogGroup":
        yield "may bring a deleted log group back"


def _on(grant: Grant, key: str) -> bool:
    return grant.resource == "*" or key in grant.resource


def _not_understood(template: dict[str, Any]) -> Iterator[str]:
    """Yield what this reader cannot judge: it is refused rather than overlooked."""
    owners = _role_owners(template)
    for id_, resource in template["Resources"].items():
        type_, properties = resource["Type"], resource.get("Properties", {})
        if type_.startswith("AWS::IAM::") and type_ not in ("AWS::IAM::Role", "AWS::IAM::Policy"):
            yield f"{id_}: {type_} is not a kind of policy this stack uses"
        if properties.get("ManagedPolicyArns"):
            yield f"{id_}: managed policies are not read"
        if type_ == "AWS::IAM::Role" and id_ not in owners:
            yield f"{id_}: a role of no function"
        if type_ == "AWS::Lambda::Permission" or "ResourcePolicy" in properties:
            yield f"{id_}: a resource policy that allows"
        if type_ == "AWS::SQS::QueuePolicy" and any(
            s["Effect"] != "Deny" for s in properties["PolicyDocument"]["Statement"]
        ):
            yield f"{id_}: a queue policy that allows"
    for owner, statement in _statements(template, owners):
        if {"NotAction", "NotResource", "NotPrincipal"} & statement.keys():
            yield f"{owner}: a statement of what is not named"


def _statements(template: dict[str, Any], owners: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (whose role, statement) of every inline and attached policy."""
    for id_, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::IAM::Role":
            for policy in properties.get("Policies", ()):
                for statement in policy["PolicyDocument"]["Statement"]:
                    yield owners.get(id_, id_), statement
        if resource["Type"] == "AWS::IAM::Policy":
            for role in properties["Roles"]:
                for statement in properties["PolicyDocument"]["Statement"]:
                    yield owners.get(role["Ref"], role["Ref"]), statement


def _role_owners(template: dict[str, Any]) -> dict[str, str]:
    """Map each function's role (logical id) to the function's short name."""
    resources, names = template["Resources"], _names(template)
    return {
        r["Properties"]["Role"]["Fn::GetAtt"][0]: FUNCTIONS.get(names.get(id_, id_), id_)
        for id_, r in resources.items()
        if r["Type"] == "AWS::Lambda::Function"
    }


def _names(template: dict[str, Any]) -> dict[str, str]:
    """Map logical ids to the output keys that name them."""
    return {
        output["Value"]["Ref"]: key
        for key, output in template["Outputs"].items()
        if isinstance(output["Value"], dict) and "Ref" in output["Value"]
    }


def _resource(value: Any, names: dict[str, str]) -> str:
    """Write a policy's resource with output keys in place of logical ids."""
    if isinstance(value, str):
        return value
    match value:
        case {"Fn::GetAtt": [id_, attribute]}:
            return f"{names.get(id_, id_)}.{attribute}"
        case {"Ref": id_}:
            return names.get(id_, id_)
        case {"Fn::Join": [separator, parts]}:
            return separator.join(_resource(part, names) for part in parts)
    # Anything else may mean any resource.
    return "*"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
