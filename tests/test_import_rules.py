"""Who may import what (DESIGN 3), read from the syntax trees."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
OURS = {"lambdas", "oracle", "runner", "stacks", "tests"}
THIRD_PARTY = object()  # any third-party module is allowed

# For each folder: the modules of ours it may import, and the third-party ones.
RULES = {
    "oracle": ({"oracle"}, set()),
    "lambdas": (
        {"lambdas"},
        {"boto3", "botocore", "aws_lambda_powertools", "aws_durable_execution_sdk_python"},
    ),
    "runner": ({"runner", "lambdas.shared.journal"}, THIRD_PARTY),
    "stacks": (
        {"stacks", "runner.protocol", "runner.names"},
        {"aws_cdk", "cdk_nag", "constructs"},
    ),
}
NEVER = {"runner": {"aws_cdk", "cdk_nag"}}


def imports(path: Path) -> Iterator[str]:
    """Yield the absolute name of every module a file imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def offence(folder: str, module: str) -> bool:
    ours, third_party = RULES[folder]
    top = module.split(".")[0]
    if top in OURS:
        return not any(module == allowed or module.startswith(f"{allowed}.") for allowed in ours)
    if top in sys.stdlib_module_names:
        return False
    if top in NEVER.get(folder, ()):
        return True
    return third_party is not THIRD_PARTY and top not in third_party


@pytest.mark.parametrize("folder", RULES)
def test_imports_keep_to_the_rules(folder):
    files = sorted((PROJECT / folder).rglob("*.py"))
    assert len(files) > 5
    found = [
        f"{path.relative_to(PROJECT)} imports {module}"
        for path in files
        for module in imports(path)
        if offence(folder, module)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("folder", "module"),
    [
        ("oracle", "runner.records"),
        ("oracle", "boto3"),
        ("lambdas", "runner.names"),
        ("lambdas", "aiohttp"),
        ("runner", "oracle.judge"),
        ("runner", "stacks.lab_stack"),
        ("runner", "aws_cdk.aws_lambda"),
        ("stacks", "runner.records"),
        ("stacks", "lambdas.shared.settings"),
    ],
)
def test_the_rules_can_be_broken(folder, module):
    assert offence(folder, module)


def test_evidence_holds_no_python():
    assert list((PROJECT / "evidence").rglob("*.py")) == []
