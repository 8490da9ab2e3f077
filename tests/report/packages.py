"""Packages to show: ordinary ones, and ones made to break a page. Built with the oracle's own builder."""

from pathlib import Path

from tests.oracle.builder import (
    CONTROL,
    TREATMENT,
    Package,
    Trial,
    control,
    four_cells,
    package_with,
    treatment,
)
from tests.oracle.protocols import REHEARSAL_TOML

SCRIPT = "</style></script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
QUOTES = "\"'><svg/onload=alert(1)>&amp;{{ 7 * 7 }}{% raw %}"
OVERRIDE = "\u202egnp.exe\u2066"
LONG = "0123456789abcdef" * 4000


def four() -> Package:
    """The four cells, as the study has them."""
    return four_cells()


def hostile_text() -> Package:
    """Script, quotes, template syntax and direction overrides wherever the format takes free text."""
    toml = REHEARSAL_TOML.replace("Study 1, rehearsal", (SCRIPT + OVERRIDE).replace('"', ""))
    package = package_with(treatment, _hostile_trial, protocol_toml=toml)
    run = package.docs["run.json"]
    run["trials"][1]["scenario"] = SCRIPT
    run["trials"][1]["variant"] = QUOTES
    package.docs["environment.json"]["code"]["commit"] = SCRIPT
    return package


def _hostile_trial(package: Package) -> Trial:
    trial = Trial(package, "hostile", TREATMENT, "durable")
    trial.open()
    first = trial.dispatch(1)
    trial.commit(first, transaction_id=SCRIPT, currency=QUOTES)
    trial.event("caller", SCRIPT, attempt=1)
    trial.event(QUOTES, OVERRIDE)
    trial.rows[0]["refund_request_id"] = QUOTES
    return trial.close()


def long_ids() -> Package:
    """Ids of tens of thousands of characters."""
    package = package_with(treatment)
    trial = Trial(package, "t" * 200, CONTROL, "conventional")
    trial.open()
    dispatch = trial.dispatch()
    trial.commit(dispatch, transaction_id=LONG)
    trial.event("caller", LONG)
    return package.add(trial.close())


def many_events(count: int = 500) -> Package:
    """A trial that committed again and again: `count` events and more effects than a label can name."""

    def story(package: Package) -> Trial:
        trial = Trial(package, "busy", TREATMENT, "conventional")
        trial.open()
        attempt = 0
        while len(trial.events) < count:
            attempt += 1
            dispatch = trial.dispatch(attempt, receive_count=attempt)
            commit = trial.commit(dispatch)
            trial.answer(dispatch, commit) if attempt % 2 else trial.timeout(dispatch)
        return trial.close()

    return package_with(story)


def no_trials() -> Package:
    """A run in which nothing but the probe ran."""
    return package_with()


def broken(folder: Path) -> Path:
    """A folder whose ledger was edited after it was frozen."""
    path = four_cells().write(folder)
    ledger = path / "trials" / "treatment-durable" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"10000"', b'"99999"'))
    return path


def only_control() -> Package:
    """Two trials that pass."""
    return package_with(control, lambda package: control(package, "durable"))
