"""Which values are known, which are everybody's, and where one begins and ends."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from runner.redact import forms, scan
from runner.redact.known import Known, Machine, gather
from runner.redact.replace import Redactor, Refused
from tests.redact import support

PREFIXES = "ABIA ACCA AGPA AIDA AIPA AKIA ANPA ANVA APKA AROA ASCA ASIA A3TX".split()  # noqa: SIM905
NOBODY = Machine("root", ("vm", "localhost"), ("/", "/tmp", "/var/task"), {})


def found(*lines: str, machine: Machine = NOBODY) -> dict[str, str]:
    """Return what is gathered from lines of text."""
    return gather(lines, machine).values


def redacted(text: str, *known: tuple[str, str]) -> str:
    """Return the text after these known values were replaced."""
    return Redactor(Known(known)).text(text)[0]


# -- nothing to know ------------------------------------------------------------------------------
def test_what_everybody_has_is_no_known_value():
    assert found() == {}
    assert found("arn:aws:iam::000000000000:root", "1790000000000", "AKIA", "ref-poc-001") == {}
    assert found(f'"refund_request_id":"{support.REQUEST_UUID}"') == {}
    assert found(machine=Machine("Ubuntu", ("ip",), ("/home",), {"AWS_ACCESS_KEY_ID": "test"})) == {}


# -- where values are found -----------------------------------------------------------------------
UNTELLING = ("percent digits", "unicode escapes", "console", "number", "no region, no account")


@pytest.mark.parametrize(
    "form", [form for form in support.D28 if form not in UNTELLING and "key" not in form]
)
def test_d28_an_account_is_found_in_every_form_that_shows_what_it_is(form):
    assert found(support.D28[form]) == {support.ACCOUNT: "account-id"}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_access_keys_are_found_in_every_prefix_form_on_their_boundaries(prefix):
    key = prefix + "Y34FZKBOKMUTVV7A"
    for text in (key, f"{key}:session", f'"{key}"', f"Credential%3D{key}%2F2026", f"%2F{key}", f"\\n{key}"):
        assert found(text) == {key.lower(): "access-key-id"}
    assert found(f"x{key}", prefix, prefix + "SHORT") == {}


def test_this_machines_credentials_are_known():
    environ = {
        "AWS_ACCESS_KEY_ID": support.KEY,
        "AWS_SECRET_ACCESS_KEY": "s" * 40,
        "AWS_SESSION_TOKEN": "t" * 40,
        "CDK_DEFAULT_ACCOUNT": support.ACCOUNT,
        "AWS_ACCOUNT_ID": "none",
    }
    assert found(machine=Machine("root", (), (), environ)) == {
        support.KEY.lower(): "access-key-id",
        "s" * 40: "secret",
        "t" * 40: "secret",
        support.ACCOUNT: "account-id",
    }
    assert support.KEY not in repr(Machine("root", (), (), environ))


# -- where values end -----------------------------------------------------------------------------
def test_names_are_replaced_as_words_and_accounts_anywhere():
    assert redacted("anna hannah Anna_ annab", ("user-name", "anna")) == "user-1 hannah user-1_ annab"
    assert redacted(f"x{support.ACCOUNT}9", ("account-id", support.ACCOUNT)) == "x9999000000019"


def test_spellings_of_a_name_and_a_path():
    known = (("user-name", "mario.rossi"), ("local-path", "/srv/lab"))
    assert redacted("mario_rossi Mario Rossi mariorossi", *known) == "user-1 user-1 user-1"
    assert (
        redacted(r"/srv//lab/x /srv/./lab \srv\lab /srv/labs", *known)
        == "/path-1/x /path-1 /path-1 /srv/labs"
    )


def test_a_short_path_stands_alone_and_the_longest_goes_first():
    known = (("local-path", "/root"), ("local-path", "/root/lab"))
    assert (
        redacted("/root/lab/x /root/.aws a/root /rootfs", *known) == "/path-1/x /path-2/.aws a/root /rootfs"
    )


def test_of_overlapping_values_no_rest_stays():
    """A token cut off at an escape is known too; the whole one must still go in one piece."""
    known = (("secret", "IQoJb3JpZ2lu"), ("secret", "IQoJb3JpZ2lu/2VjEPj"))
    assert redacted(r"IQoJb3JpZ2lu\/2VjEPj IQoJb3JpZ2lu%2F2VjEPj", *known) == "secret-1 secret-1"


def test_an_account_with_a_leading_zero_is_found_as_a_number():
    redactor = Redactor(Known([("account-id", "012345678901")]))
    log = Counter()
    assert redactor.value({"n": 12345678901, "s": "n=12345678901;"}, "", log) == {
        "n": 999900000001, "s": "n=999900000001;"}  # fmt: skip
    assert log == {("/n", "account-id"): 1, ("/s", "account-id"): 1}


# -- pseudonyms -----------------------------------------------------------------------------------
def test_pseudonyms_are_counted_in_order_of_appearance_not_of_value():
    known = Known([("account-id", "111111111111"), ("account-id", "222222222222")])
    assert Redactor(known).text("222222222222 111111111111")[0] == "999900000001 999900000002"


def test_a_pseudonym_is_never_a_known_value():
    assert redacted("999900000001", ("account-id", "999900000001")) == "999900000002"


def test_two_keys_that_become_one_are_refused():
    redactor = Redactor(Known([("user-name", "anna")]))
    with pytest.raises(Refused, match="two keys"):
        redactor.value({"anna": 1, "Anna": 2}, "", Counter())


def test_pointers_are_redacted_too_and_escaped():
    log = Counter()
    Redactor(Known([("user-name", "anna")])).value({"a/anna~": ["x", "anna"]}, "/7", log)
    assert log == {("/7/a~1user-1~0", "user-name"): 1, ("/7/a~1user-1~0/1", "user-name"): 1}


# -- the two halves ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("module", "allowed"), [(scan, {"runner.redact.forms"}), (forms, set())])
def test_the_scan_imports_nothing_of_what_it_checks(module, allowed):
    tree = ast.parse(Path(module.__file__).read_text())
    names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in names if name.split(".")[0] == "runner"} == allowed
