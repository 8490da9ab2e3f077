"""The access rules of DESIGN 5: as an exact table, as rules, and with violations planted."""

import copy

import pytest

from runner.names import Output
from tests.stacks.access import Grant, grants, violations
from tests.stacks.synthesis import Assembly

APPEND = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
CONSUME = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
SIGNAL = {"dynamodb:GetItem", "dynamodb:UpdateItem"}
WRITE_LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
READ_STREAM = {
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
}
CHECKPOINT = {"lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState"}

# All that each function may do. A log group's Arn ends in ":*": its streams, as the service has it.
TABLE = {
    "provider": {
        "LedgerTable.Arn": {"dynamodb:PutItem"},
        "BarrierTable.Arn": SIGNAL,
        "JournalTable.Arn": APPEND,
        "ProviderLogGroup.Arn": WRITE_LOGS,
    },
    "release": {
        "BarrierTable.Arn": SIGNAL,
        "JournalTable.Arn": APPEND,
        "JournalTable.StreamArn": READ_STREAM,
        "ReleaseFailureQueueUrl.Arn": {"sqs:SendMessage"},
        "ReleaseLogGroup.Arn": WRITE_LOGS,
    },
    "conventional": {
        "JournalTable.Arn": APPEND,
        "ProviderFunction.Arn": {"lambda:InvokeFunction"},
        "ConventionalQueueUrl.Arn": CONSUME,
        "ConventionalLogGroup.Arn": WRITE_LOGS,
    },
    "durable": {
        "JournalTable.Arn": APPEND,
        "ProviderFunction.Arn": {"lambda:InvokeFunction"},
        "DurableQueueUrl.Arn": CONSUME,
        "DurableLogGroup.Arn": WRITE_LOGS,
        "DurableFunction.Arn:*": CHECKPOINT,
    },
}


def test_each_function_may_do_exactly_what_the_table_says(study: Assembly) -> None:
    expected = {
        Grant(who, action, resource)
        for who, resources in TABLE.items()
        for resource, actions in resources.items()
        for action in actions
    }
    assert set(grants(study.template)) == expected


def test_no_access_rule_is_broken(study: Assembly, rehearsal: Assembly) -> None:
    assert violations(study.template) == []
    assert violations(rehearsal.template) == []


def test_only_lambda_may_assume_the_roles(study: Assembly) -> None:
    roles = study.resources("AWS::IAM::Role")
    assert len(roles) == 4
    for role in roles.values():
        (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Action"] == "sts:AssumeRole"
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_every_queue_refuses_plain_http(study: Assembly) -> None:
    refused = set()
    for policy in study.resources("AWS::SQS::QueuePolicy").values():
        (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
        assert (statement["Effect"], statement["Action"]) == ("Deny", "sqs:*")
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        refused |= {queue["Ref"] for queue in policy["Properties"]["Queues"]}
    assert refused == set(study.resources("AWS::SQS::Queue"))


# What is planted: a statement in one function's role -> the sentence that must name it.
LEDGER, BARRIER, JOURNAL = Output.LEDGER_TABLE, Output.BARRIER_TABLE, Output.JOURNAL_TABLE
PLANTED = {
    "a caller reads the ledger": (
        ("conventional", "dynamodb:GetItem", LEDGER),
        "conventional: touches the ledger (dynamodb:GetItem on LedgerTable.Arn)",
    ),
    "the durable caller writes the ledger": (
        ("durable", "dynamodb:PutItem", LEDGER),
        "durable: touches the ledger (dynamodb:PutItem on LedgerTable.Arn)",
    ),
    "the release controller reads the ledger": (
        ("release", "dynamodb:Query", LEDGER),
        "release: touches the ledger (dynamodb:Query on LedgerTable.Arn)",
    ),
    "the provider updates a ledger item": (
        ("provider", "dynamodb:UpdateItem", LEDGER),
        "provider: may do more to the ledger than put (dynamodb:UpdateItem on LedgerTable.Arn)",
    ),
    "a caller sees the scenario": (
        ("durable", "dynamodb:GetItem", BARRIER),
        "durable: sees the barrier (dynamodb:GetItem on BarrierTable.Arn)",
    ),
    "the release controller calls the provider": (
        ("release", "lambda:InvokeFunction", Output.PROVIDER_FUNCTION),
        "release: may invoke a function (lambda:InvokeFunction on ProviderFunction.Arn)",
    ),
    "a caller calls the release controller": (
        ("conventional", "lambda:InvokeFunction", Output.RELEASE_FUNCTION),
        "conventional: may invoke more than the provider (lambda:InvokeFunction on ReleaseFunction.Arn)",
    ),
    "a handler deletes an event": (
        ("provider", "dynamodb:DeleteItem", JOURNAL),
        "provider: may delete an item (dynamodb:DeleteItem on JournalTable.Arn)",
    ),
    "a handler deletes in a batch": (
        ("release", "dynamodb:BatchWriteItem", JOURNAL),
        "release: may delete an item (dynamodb:BatchWriteItem on JournalTable.Arn)",
    ),
    "a wildcard action": (
        ("conventional", "dynamodb:*", JOURNAL),
        "conventional: wildcard action (dynamodb:* on JournalTable.Arn)",
    ),
    "any table": (
        ("conventional", "dynamodb:GetItem", "*"),
        "conventional: touches the ledger (dynamodb:GetItem on *)",
    ),
    "a wildcard resource": (
        ("durable", "lambda:GetDurableExecutionState", "*"),
        "durable: wildcard resource without a reason (lambda:GetDurableExecutionState on *)",
    ),
    "a log group that comes back": (
        ("durable", "logs:CreateLogGroup", Output.DURABLE_LOG_GROUP),
        "durable: may bring a deleted log group back (logs:CreateLogGroup on DurableLogGroup.Arn)",
    ),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_grant_is_named(study: Assembly, case: str) -> None:
    (who, action, on), sentence = PLANTED[case]
    template = copy.deepcopy(study.template)
    resource = on if on == "*" else {"Fn::GetAtt": [study.output_id(on), "Arn"]}
    _role(study, template, who)["Policies"].append(
        {"PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": action, "Resource": resource}]}}
    )
    assert sentence in violations(template)


def test_what_the_reader_does_not_understand_is_a_violation(study: Assembly) -> None:
    template = copy.deepcopy(study.template)
    role = _role(study, template, "release")
    role["ManagedPolicyArns"] = ["arn:aws:iam::aws:policy/AdministratorAccess"]
    role["Policies"].append(
        {"PolicyDocument": {"Statement": [{"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}]}}
    )
    template["Resources"]["Extra"] = {"Type": "AWS::IAM::ManagedPolicy"}
    template["Resources"]["Open"] = {"Type": "AWS::Lambda::Permission", "Properties": {}}
    found = violations(template)
    role_id = study.behind(Output.RELEASE_FUNCTION)["Role"]["Fn::GetAtt"][0]
    assert f"{role_id}: managed policies are not read" in found
    assert "release: a statement of what is not named" in found
    assert "Extra: AWS::IAM::ManagedPolicy is not a kind of policy this stack uses" in found
    assert "Open: a resource policy that allows" in found


def _role(study: Assembly, template: dict, who: str) -> dict:
    function = study.behind(f"{who.capitalize()}Function")
    return template["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]
