"""Rules that the sources themselves must keep, read from their syntax trees."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "lambdas").rglob("*.py"))
PACKAGES = ("app.py", "lambdas", "oracle", "runner", "stacks", "tests")
# One shows what the ambiguous word does, against a real server; the other is this rule.
EXEMPT = {ROOT / "tests/lambdas/test_sdk_retries.py", Path(__file__).resolve()}
ALLOWED_PACKAGES = {
    "boto3",
    "botocore",
    "aws_lambda_powertools",
    "aws_durable_execution_sdk_python",
    "lambdas",
}
WHO_MAY_USE = {
    "shared": {"shared"},
    "caller": {"shared", "caller"},
    "provider": {"shared", "provider"},
    "release": {"shared", "release"},
}
CLIENT_MAKERS = {"client", "create_client", "resource", "get_session", "Session", "make_client"}


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path):
    return path.relative_to(ROOT).as_posix()


def imports(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}:{node.lineno}: relative import"
            yield node.module


def python_files():
    for package in PACKAGES:
        yield from [ROOT / package] if package.endswith(".py") else sorted((ROOT / package).rglob("*.py"))


def is_ambiguous(node):
    words = (
        [node.value]
        if isinstance(node, ast.Constant)
        else [getattr(node, "arg", None), getattr(node, "id", None)]
    )
    return "max_attempts" in words


def test_d14_the_word_that_means_two_things_is_nowhere():
    found = [
        f"{name(path)}:{node.lineno}"
        for path in python_files()
        if path.exists() and path not in EXEMPT
        for node in ast.walk(tree(path))
        if is_ambiguous(node)
    ]
    assert found == [], "say total_max_attempts, which counts requests"


@pytest.mark.parametrize("source", ["f(max_attempts=1)", '{"max_attempts": 1}', "max_attempts = 1"])
def test_the_word_is_found_wherever_it_stands(source):
    assert any(is_ambiguous(node) for node in ast.walk(ast.parse(source)))
    clean = source.replace("max_attempts", "total_max_attempts")
    assert not any(is_ambiguous(node) for node in ast.walk(ast.parse(clean)))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_handlers_import_only_what_they_may(path):
    for module in imports(path):
        package, *rest = module.split(".")
        assert package in sys.stdlib_module_names | ALLOWED_PACKAGES, f"{name(path)} imports {module}"
        if package == "lambdas":
            own = path.relative_to(ROOT / "lambdas").parts[0]
            assert rest[0] in WHO_MAY_USE[own], f"{name(path)} imports {module}"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_client_is_made_at_import(path):
    """Nothing at module level or in a class body, a default or a decorator may call a maker of clients."""
    at_import = []
    waiting = [tree(path)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += node.decorator_list + node.args.defaults + [d for d in node.args.kw_defaults if d]
        elif not isinstance(node, ast.Lambda):
            at_import.append(node)
            waiting += ast.iter_child_nodes(node)
    called = {
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        for node in at_import
        if isinstance(node, ast.Call)
    }
    assert not called & CLIENT_MAKERS


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_nothing_deletes_and_nothing_but_the_ledger_module_writes_the_ledger(path):
    strings = {node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)}
    calls = {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    assert not strings & {"Delete", "DeleteRequest", "DeleteItem"}
    assert not calls & {"delete_item", "batch_write_item", "put_item", "update_item", "execute_statement"}
    assert ("Put" in strings) == (name(path) in {"lambdas/provider/ledger.py", "lambdas/shared/journal.py"})


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_every_module_says_what_it_is_and_stays_small(path):
    assert ast.get_docstring(tree(path))
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 70, f"{name(path)}:{node.lineno}"
