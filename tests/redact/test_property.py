"""Random places, random encodings: a known value never survives, and the scan would have seen it."""

import base64
import json
from collections import Counter
from urllib.parse import quote, quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.records import canonical
from runner.redact.known import ACCESS_KEY, ACCOUNT, HOST, PATH, SECRET, SIGNATURE, STACK, USER, Known
from runner.redact.replace import Redactor
from runner.redact.scan import Scan
from tests.redact import support

VALUES = [
    (ACCOUNT, support.ACCOUNT),
    (ACCOUNT, "012345678901"),
    (ACCESS_KEY, support.KEY),
    (SECRET, support.TOKEN),
    (SIGNATURE, support.SIGNATURE),
    (STACK, support.STACK_UUID),
    (PATH, "/home/mario.rossi"),
    (USER, "mario.rossi"),
    (HOST, "marios-laptop"),
]
KNOWN = Known(VALUES)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


ENCODINGS = {
    "plain": str,
    "upper": str.upper,
    "json": json.dumps,
    "object": lambda text: json.dumps({"k": [text, 1]}),
    "ascii": lambda text: "".join(f"\\u{ord(c):04X}" for c in text),
    "url": lambda text: quote(text, safe=""),
    "query": lambda text: "q=" + quote_plus(text) + "&x=1",
    "all percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "base64": b64,
    "urlsafe": urlsafe,
    "shifted": lambda text: b64("é;" + text + ";"),
    "glued": lambda text: "id_" + b64("<" + text + ">"),
    "log": lambda text: f"[INFO] ({text}) done",
}
# Upper case after base64 is other base64, so letters change case before anything else does.
chains = st.tuples(
    st.sampled_from(["plain", "upper"]),
    st.lists(st.sampled_from(sorted(set(ENCODINGS) - {"upper"})), max_size=4),
).map(lambda pair: [pair[0], *pair[1]])
noise = st.text(alphabet=" .:;/=&{}[]<>é%\\\"'+", max_size=6)


def encoded(value: str, chain: list[str]) -> str:
    for name in chain:
        value = ENCODINGS[name](value)
    return value


def clean(data: bytes, redactor: Redactor) -> list:
    return Scan(KNOWN.spellings(), redactor.pseudonyms.given.values()).files({"f.json": data})


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(VALUES), chains, noise, noise, st.sampled_from(["value", "key", "list", "deep"]))
def test_a_known_value_never_survives_whatever_it_is_wrapped_in(pair, chain, before, after, place):
    planted = f"{before}{encoded(pair[1], chain)}{after}"
    document = {"value": {"a": planted}, "key": {planted: 1}, "list": ["x", planted],
                "deep": {"a": {"b": [{"c": json.dumps({"d": planted})}]}}}[place]  # fmt: skip
    redactor = Redactor(KNOWN)
    assert clean(canonical(document), redactor), "the scan must see what is planted"
    log: Counter = Counter()
    copy = redactor.value(document, "", log)
    assert clean(canonical(copy), redactor) == []
    assert pair[0] in {rule for _, rule in log}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(VALUES), chains), min_size=2, max_size=6))
def test_the_same_value_has_one_pseudonym_and_two_values_have_two(planted):
    redactor = Redactor(KNOWN)
    for (_, value), chain in planted:
        redactor.text(encoded(value, chain))
    names = redactor.pseudonyms.given
    assert len(set(names.values())) == len(names)
    assert set(names) <= set(KNOWN.values)


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers(-(10**8), 10**8) | st.text(max_size=20),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner)))  # fmt: skip
def test_what_holds_no_known_value_is_left_as_it_is(document):
    log: Counter = Counter()
    assert Redactor(KNOWN).value(document, "", log) == document
    assert not log
