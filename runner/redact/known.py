"""Known values: what must not be in a public copy, gathered from the package itself and from this machine.

Patterns only find values here, in the places where their meaning is certain (an ARN's account field, a stack
ARN's last part). Once found, a value is removed wherever it stands (CASES D28).
"""

import getpass
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from runner.places import PROJECT_ROOT
from runner.redact.views import texts

# Rules, in the order in which a value that fits several is claimed.
ACCOUNT, ACCESS_KEY, SECRET, SIGNATURE = "account-id", "access-key-id", "secret", "signature"
STACK, REQUEST, PATH, ENDPOINT, USER, HOST = (
    "stack-id", "request-id", "local-path", "local-endpoint", "user-name", "host-name",
)  # fmt: skip
RULES = (ACCOUNT, ACCESS_KEY, SECRET, SIGNATURE, STACK, REQUEST, PATH, ENDPOINT, USER, HOST)

EMULATOR_ACCOUNT = "000000000000"
MIN_NAME, MIN_SECRET = 4, 8
# Names that thousands of machines share name nobody, and some are words of the evidence itself.
_SHARED = """
root admin administrator user ubuntu debian ec2-user runner nobody node vscode codespace jenkins gitlab docker
default guest test localhost localdomain local main host
lambda provider caller release conventional durable study refund queue ledger journal table index protocol
stack account path endpoint secret signature redacted invalid
"""
COMMON_NAMES = frozenset(_SHARED.split())
# Folders that AWS or the system gives everyone; as a home or project path they tell nothing.
COMMON_PATHS = frozenset(("", "/tmp", "/var/task", "/opt", "/home", "/users", "/usr", "/var", "/nonexistent"))

_KEY_PREFIXES = "A3T[A-Z0-9]|ABIA|ACCA|AGPA|AIDA|AIPA|AKIA|ANPA|ANVA|APKA|AROA|ASCA|ASIA"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_QUOTED = r"""\s*["']?\s*[:=]\s*(?:\{\s*"S"\s*:\s*)?["']?"""
_SECRET_NAMES = "x-amz-security-token|session_?token|secret_?access_?key"
_CREDENTIAL = r"""([^\s"',&;<>\\{}]{8,})"""
# Each pattern's one group is the value.
PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (rule, re.compile(pattern, flags))
    for rule, pattern, flags in (
        (ACCOUNT, r"arn:[a-z0-9-]*:[a-z0-9-]*:[a-z0-9-]*:(\d{12})(?!\d)", re.I),
        (ACCOUNT, r"https?://[^/\s\"]+/(\d{12})(?=/)", re.I),
        (ACCOUNT, r"(?<![0-9a-f])(\d{12})(?=-[a-z]{2}(?:-[a-z]+)+-\d)", re.I),
        (ACCOUNT, r"(?:account|owner)(?:_?id)?" + _QUOTED + r"(\d{12})(?!\d)", re.I),
        (ACCESS_KEY, rf"(?<![A-Za-z0-9])((?:{_KEY_PREFIXES})[A-Z0-9]{{12,124}})(?![A-Za-z0-9])", 0),
        (SECRET, rf"(?:{_SECRET_NAMES}){_QUOTED}{_CREDENTIAL}", re.I),
        (SECRET, rf"authorization{_QUOTED}(?:Bearer|Basic)\s+{_CREDENTIAL}", re.I),
        (SIGNATURE, r"(?:x-amz-)?signature" + _QUOTED + r"([0-9a-f]{64})(?![0-9a-f])", re.I),
        (STACK, rf":(?:stack|changeset)/[^/\s\"]+/({_UUID})", re.I),
        (REQUEST, rf"(?<!refund_)request[_-]?id{_QUOTED}({_UUID})", re.I),
        (PATH, r"(?<![\w.-])(/(?:home|Users)/[\w.@-]+)", 0),
        (PATH, r"([a-z]:[\\/]+users[\\/]+[\w.@-]+)", re.I),
        (ENDPOINT, r"((?:127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\]|(?<![a-z0-9.-])(?:[a-z0-9-]+\.)*localhost"
                   r"(?:\.[a-z0-9-]+)*):\d{2,5})(?!\d)", re.I),
    )
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """What this machine would give away. Injected, so that tests can be any machine."""

    user: str
    hosts: tuple[str, ...]
    paths: tuple[str, ...]
    environ: Mapping[str, str] = field(repr=False)

    @classmethod
    def here(cls) -> "Machine":
        """Return the machine that this process runs on."""
        host, home = socket.gethostname(), Path.home()
        paths = (home, home.resolve(), PROJECT_ROOT, Path.cwd())
        return cls(getpass.getuser(), (host, host.split(".")[0]), tuple(map(str, paths)), os.environ)


class Hit(NamedTuple):
    """A known value in a text: where, which rule, and the value in its one identity form."""

    start: int
    end: int
    rule: str
    value: str


class Known:
    """The known values, by rule, and the search for them.

    A value's identity is its lower-case form without what a writer may vary (separators in an account id,
    hyphens in a UUID), so every spelling gets the same pseudonym.
    """

    def __init__(self, found: Iterable[tuple[str, str]]):
        self.values: dict[str, str] = {}
        for rule, value in sorted(found, key=lambda pair: (RULES.index(pair[0]), pair[1])):
            self.values.setdefault(_identity(rule, value), rule)
        self._uuids = {value: rule for value, rule in self.values.items() if rule in (STACK, REQUEST)}
        # Longest first: the project's path before the home folder that it lies in.
        rest = sorted((v for v in self.values if v not in self._uuids), key=lambda v: (-len(v), v))
        alternatives = (f"(?P<_{i}>{_expression(self.values[v], v)})" for i, v in enumerate(rest))
        self._rest, self._pattern = rest, re.compile("|".join(alternatives), re.I) if rest else None

    def find(self, text: str) -> list[Hit]:
        """Return the known values in `text`; a UUID may overlap another value."""
        hits = []
        if self._pattern:
            for match in self._pattern.finditer(text):
                value = self._rest[int(match.lastgroup[1:])]
                hits.append(Hit(match.start(), match.end(), self.values[value], value))
        if self._uuids:
            for match in _ANY_UUID.finditer(text):
                value = match.group().replace("-", "").lower()
                if value in self._uuids:
                    hits.append(Hit(match.start(), match.end(), self._uuids[value], value))
        return hits

    def spellings(self) -> list[tuple[str, str]]:
        """Return (rule, value) for whoever searches by other means; UUIDs with and without hyphens."""
        pairs = [(rule, value) for value, rule in self.values.items()]
        return pairs + [(rule, hyphenated(value)) for value, rule in self._uuids.items()]


# A digest is no UUID: 32 digits without hyphens must stand alone.
_ANY_UUID = re.compile(rf"{_UUID}|(?<![0-9a-f])[0-9a-f]{{32}}(?![0-9a-f])", re.I)


def gather(raw_texts: Iterable[str], machine: Machine) -> Known:
    """Return the known values of a package, given every line of its text, and of this machine."""
    found, seen = set(_of_machine(machine)), set()
    for line in raw_texts:
        for text in texts(line, seen):
            found.update(_in_text(text))
    return Known((rule, value) for rule, value in found if _names_somebody(rule, value))


def hyphenated(digits: str) -> str:
    """Return 32 hexadecimal digits as a UUID."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    for rule, pattern in PATTERNS:
        for match in pattern.finditer(text):
            yield rule, match.group(1)
            if rule == PATH:
                yield USER, re.split(r"[\\/]", match.group(1))[-1]


def _of_machine(machine: Machine) -> Iterator[tuple[str, str]]:
    yield USER, machine.user
    yield from ((HOST, host) for host in machine.hosts)
    yield from ((PATH, path.rstrip("/\\")) for path in machine.paths)
    for name in ("AWS_ACCOUNT_ID", "CDK_DEFAULT_ACCOUNT"):
        if re.fullmatch(r"\d{12}", machine.environ.get(name, "")):
            yield ACCOUNT, machine.environ[name]
    for rule, name in ((ACCESS_KEY, "AWS_ACCESS_KEY_ID"), (SECRET, "AWS_SECRET_ACCESS_KEY"),
                       (SECRET, "AWS_SESSION_TOKEN")):  # fmt: skip
        if len(machine.environ.get(name, "")) >= 2 * MIN_SECRET:
            yield rule, machine.environ[name]


def _names_somebody(rule: str, value: str) -> bool:
    """The emulator's account and what everybody has are no secrets; replacing them mauls the rest."""
    folded = value.lower()
    if rule == ACCOUNT:
        return value != EMULATOR_ACCOUNT
    if rule == PATH:
        return folded not in COMMON_PATHS
    if rule in (USER, HOST):
        return len(value) >= MIN_NAME and folded not in COMMON_NAMES
    return True


def _identity(rule: str, value: str) -> str:
    if rule == SECRET:  # found in a URL, it is one with the same secret found in JSON
        value = unquote(value)
    return value.lower().replace("-", "") if rule in (STACK, REQUEST) else value.lower()


def _expression(rule: str, value: str) -> str:
    """Return the regular expression that finds a value in every spelling."""
    exact = re.escape(value)
    if rule == ACCOUNT:
        spaced = "[- ]?".join((value[:4], value[4:8], value[8:]))
        # As a JSON number an id loses its leading zeros.
        bare = str(int(value))
        return rf"{spaced}|(?<!\d){bare}(?!\d)" if 10 <= len(bare) < 12 else spaced
    if rule == PATH:
        # A single folder such as /root is also the end of many an URL; a longer path is itself anywhere.
        if re.search(r"[\\/].*[\\/]", value):
            exact = r"[\\/]+(?:\.[\\/]+)?".join(map(re.escape, re.split(r"[\\/]+", value)))
            return rf"{exact}(?![A-Za-z0-9])"
        return rf"(?<![A-Za-z0-9._~-]){exact}(?![A-Za-z0-9_-])"
    if rule in (USER, HOST):
        exact = "[._ -]?".join(map(re.escape, re.split("[._ -]", value)))
        return rf"(?<![A-Za-z0-9]){exact}(?![A-Za-z0-9])"
    return rf"{exact}(?!\d)" if rule == ENDPOINT else exact
