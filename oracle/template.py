"""Looks up, in the deployed template, every number that the protocol fixes.

Resources are found by what they are (the handler of a function, the source of a mapping), never by a
logical id, so a rename of a construct does not blind the oracle.
"""

from __future__ import annotations

import re

from oracle.finding import Finding, Where, breach

HANDLERS = {
    "conventional": "lambdas.caller.conventional.handler",
    "durable": "lambdas.caller.durable.handler",
    "provider": "lambdas.provider.handler.handler",
    "release": "lambdas.release.handler.handler",
}
_NATURAL = re.compile(r"(0|[1-9][0-9]{0,9})\Z")


class _Missing(Exception):
    """A resource that must be in the template is not, or not once."""


def check_template(template: dict, protocol: dict, variant: str) -> list[Finding]:
    """Findings V04 for a wrong number and V05 for a resource that cannot be found."""
    findings, resources = [], template["Resources"]
    for check in (_caller, _queue, _provider, _release):
        try:
            for logical_id, name, found, expected in check(resources, protocol, variant):
                if not _equal(found, expected):
                    where = Where("template.json", f"/Resources/{logical_id}/Properties")
                    findings.append(
                        breach("V04", f"{name}: expected {expected}, found {found}", where, name=name)
                    )
        except _Missing as missing:
            findings.append(breach("V05", str(missing), Where("template.json", "/Resources")))
    return findings


def _equal(found, expected) -> bool:
    """Templates and environment variables may write a number as a string."""
    if type(expected) is int and isinstance(found, str) and _NATURAL.match(found):
        return int(found) == expected
    return type(found) is type(expected) and found == expected


def _caller(resources, protocol, variant):
    logical_id, function = _function(resources, HANDLERS[variant])
    caller, variables = protocol["caller"], _variables(function)
    yield logical_id, "Timeout", function.get("Timeout"), caller["function_timeout_s"]
    yield logical_id, "SUC_DEADLINE_MS", variables.get("SUC_DEADLINE_MS"), caller["deadline_ms"]
    if variant == "durable":
        row, config = protocol["variants"]["durable"], _dict(function.get("DurableConfig"))
        yield logical_id, "ExecutionTimeout", config.get("ExecutionTimeout"), row["execution_timeout_s"]
        yield logical_id, "RetentionPeriodInDays", config.get("RetentionPeriodInDays"), row["retention_days"]
        yield logical_id, "SUC_STEP_NAME", variables.get("SUC_STEP_NAME"), row["step_name"]
        yield logical_id, "SUC_STEP_ATTEMPTS", variables.get("SUC_STEP_ATTEMPTS"), row["step_attempts"]
        yield (
            logical_id,
            "SUC_STEP_RETRY_DELAY_S",
            variables.get("SUC_STEP_RETRY_DELAY_S"),
            row["step_retry_delay_s"],
        )


def _queue(resources, protocol, variant):
    row = protocol["variants"][variant]
    function_id, _ = _function(resources, HANDLERS[variant])
    mapping_id, mapping = _mapping(resources, function_id)
    yield mapping_id, "BatchSize", mapping.get("BatchSize"), row["batch_size"]
    yield mapping_id, "Enabled", mapping.get("Enabled", True), True
    queue_id = _target(mapping.get("EventSourceArn"))
    queue = _properties(resources, queue_id, "AWS::SQS::Queue")
    redrive = _dict(queue.get("RedrivePolicy"))
    yield queue_id, "FifoQueue", queue.get("FifoQueue"), True
    yield queue_id, "VisibilityTimeout", queue.get("VisibilityTimeout"), row["visibility_timeout_s"]
    yield queue_id, "maxReceiveCount", redrive.get("maxReceiveCount"), row["max_receive_count"]
    dead = _target(redrive.get("deadLetterTargetArn"))
    yield dead, "FifoQueue", _properties(resources, dead, "AWS::SQS::Queue").get("FifoQueue"), True


def _provider(resources, protocol, _variant):
    row = protocol["provider"]
    logical_id, function = _function(resources, HANDLERS["provider"])
    variables = _variables(function)
    yield logical_id, "Timeout", function.get("Timeout"), row["function_timeout_s"]
    yield logical_id, "SUC_HOLD_BUDGET_S", variables.get("SUC_HOLD_BUDGET_S"), row["hold_budget_s"]
    yield logical_id, "SUC_BARRIER_POLL_MS", variables.get("SUC_BARRIER_POLL_MS"), row["barrier_poll_ms"]


def _release(resources, protocol, _variant):
    row = protocol["release"]
    logical_id, function = _function(resources, HANDLERS["release"])
    yield logical_id, "Timeout", function.get("Timeout"), row["function_timeout_s"]
    yield (
        logical_id,
        "SUC_DEADLINE_MS",
        _variables(function).get("SUC_DEADLINE_MS"),
        protocol["caller"]["deadline_ms"],
    )
    mapping_id, mapping = _mapping(resources, logical_id)
    yield mapping_id, "MaximumRetryAttempts", mapping.get("MaximumRetryAttempts"), row["max_retries"]


def _function(resources, handler):
    return _only(
        resources, "AWS::Lambda::Function", lambda p: p.get("Handler") == handler, f"function {handler}"
    )


def _mapping(resources, function_id):
    """The mapping that feeds a function, directly or through one of its aliases."""
    names = {function_id} | {
        logical_id
        for logical_id, resource in resources.items()
        if _dict(resource).get("Type") == "AWS::Lambda::Alias"
        and _target(_dict(resource.get("Properties")).get("FunctionName")) == function_id
    }
    return _only(
        resources,
        "AWS::Lambda::EventSourceMapping",
        lambda p: _target(p.get("FunctionName")) in names,
        f"event source mapping of {function_id}",
    )


def _only(resources, kind, wanted, what):
    typed = [
        (logical_id, _dict(resource.get("Properties")))
        for logical_id, resource in resources.items()
        if _dict(resource).get("Type") == kind and "Condition" not in resource  # it may not have been made
    ]
    found = [(logical_id, properties) for logical_id, properties in typed if wanted(properties)]
    if len(found) != 1:
        raise _Missing(f"expected one {what}, found {len(found)}")
    return found[0]


def _properties(resources, logical_id, kind) -> dict:
    resource = _dict(resources.get(logical_id))
    if resource.get("Type") != kind or "Condition" in resource:
        raise _Missing(f"expected {logical_id or 'a reference'} to be a {kind}, found {resource.get('Type')}")
    return _dict(resource.get("Properties"))


def _variables(function) -> dict:
    return _dict(_dict(function.get("Environment")).get("Variables"))


def _target(value) -> str:
    """The one resource that an expression refers to; "" if it is none, one of several or a choice."""
    references = _references(value)
    return references.pop() if len(references) == 1 else ""


def _references(value) -> set[str]:
    """Logical ids that an expression refers to, however deep; of a choice also "", as it may be any other."""
    if isinstance(value, list):
        return set().union(*map(_references, value))
    if not isinstance(value, dict):
        return set()
    found = {""} if "Fn::If" in value else set()
    target = value.get("Ref", value.get("Fn::GetAtt"))
    if isinstance(target, list) and target and isinstance(target[0], str):
        found.add(target[0])
    elif isinstance(target, str) and not target.startswith("AWS::"):
        found.add(target.split(".")[0])
    return found.union(*(_references(inner) for inner in value.values()))


def _dict(value) -> dict:
    return value if isinstance(value, dict) else {}
