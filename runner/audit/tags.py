"""The tagging API: it lists ghosts and misses residents, so it only says where to look (CASES D30)."""

import re
from collections.abc import Iterator

from runner.audit.ask import Asker
from runner.audit.kinds import KINDS, STREAM, Kind
from runner.names import PROJECT


def tagged(ask: Asker) -> Iterator[str]:
    """Yield the ARNs that carry, or once carried, the study's tags. Raises Refused."""
    filters = [
        {"Key": "project", "Values": [PROJECT]},
        {"Key": "study", "Values": [ask.account.study]},
    ]
    for page in ask.pages("resourcegroupstaggingapi", "GetResources", TagFilters=filters):
        for mapping in page["ResourceTagMappingList"]:
            yield mapping["ResourceARN"]


def kind_of(arn: str) -> tuple[Kind, str] | None:
    """Return which kind an ARN is of and its name there; None for a kind the audit does not know."""
    service, resource = arn.split(":", 5)[2::3]
    type_, _, name = re.sub(r"[:/]", " ", resource, count=1).partition(" ")
    match service, type_:
        case "dynamodb", "table":
            return (KINDS[STREAM], arn) if "/stream/" in name else (KINDS["AWS::DynamoDB::Table"], name)
        case "sqs", _:
            return KINDS["AWS::SQS::Queue"], resource
        case "lambda", "function":
            qualifier = name.partition(":")[2]
            if not qualifier:
                return KINDS["AWS::Lambda::Function"], name
            return KINDS[f"AWS::Lambda::{'Version' if qualifier.isdigit() else 'Alias'}"], name
        case "lambda", "layer":
            return KINDS["AWS::Lambda::LayerVersion"], name
        case "lambda", "event-source-mapping":
            return KINDS["AWS::Lambda::EventSourceMapping"], name
        case "iam", "role":
            return KINDS["AWS::IAM::Role"], name.rpartition("/")[2]
        case "logs", "log-group":
            return KINDS["AWS::Logs::LogGroup"], name.removesuffix(":*")
        case "cloudformation", "stack":
            return KINDS["AWS::CloudFormation::Stack"], name.partition("/")[0]
    return None
