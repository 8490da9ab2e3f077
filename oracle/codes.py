"""Every code of evidence/FORMAT.md version 1: its clause, word for word, and what a breach costs.

Consequences:
  broken      the package's integrity is gone; nothing in it is judged
  unreadable  that file (or line) is no evidence; what else is intact still counts
  incomplete  the fact is missing; pass becomes indeterminate
  violation   the invariant is broken; the verdict is fail
  invalid     the protocol or the treatment was not applied as written; never pass
  unproven    that the protocol was applied cannot be shown; never pass
  note        for the reader; costs nothing
"""

# ruff: noqa: E501 - one clause is one line, as in FORMAT.md

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    code: str
    consequence: str
    clause: str


_TABLE = """
P01 broken index.json MUST be readable under the rules of section 2.
P02 broken The index's format MUST be suc-evidence.
P03 broken The index's version MUST be one that the reader supports.
P04 broken The index MUST have exactly the members format, version and files, and each entry exactly path, role, sha256 and size, of the stated types.
P05 broken The index MUST list at least one file.
P06 broken The entries MUST be sorted by path.
P07 broken No path MUST be listed twice.
P08 broken Every path MUST be relative, made of segments of A-Z a-z 0-9 . _ - joined by one slash, with no segment . or .., and MUST NOT be index.json.
P09 broken No two paths MUST differ only in case.
P10 broken Every listed file MUST exist.
P11 broken Nothing MUST exist that is not listed, nor anything but zeros after an archive's end.
P12 broken Every entry on disk or in an archive MUST be a regular file or a folder, never a link or a device.
P13 broken Every file's size MUST be the listed one.
P14 broken Every file's SHA-256 MUST be the listed one.
P15 broken No file MUST be larger than 67108864 bytes.
P16 broken A package folder whose name is 64 hexadecimal digits MUST be named by the SHA-256 of index.json.
P17 broken An archive MUST NOT hold two members of one name.
P18 broken An archive's members MUST lie at its top or all in one top folder, under the path rules of P08.
P19 broken Every role MUST be known and MUST stand at its own path.
J01 unreadable A file MUST NOT begin with a byte order mark.
J02 unreadable Text MUST be valid UTF-8.
J03 unreadable Every document and line MUST be one complete JSON value.
J04 unreadable A file MUST end with exactly one line feed.
J05 unreadable Lines MUST end in LF alone, never in CR LF.
J06 unreadable There MUST be no blank line.
J07 unreadable No object MUST repeat a key, at any depth.
J08 unreadable NaN and Infinity MUST NOT occur.
J09 unreadable A number MUST be an integer without fraction or exponent.
J10 unreadable An integer MUST lie within -(2^53-1) and 2^53-1.
J11 unreadable A string MUST NOT hold a lone surrogate.
J12 unreadable The bytes MUST be the canonical ones: keys sorted by code point, no spaces, shortest escapes, non-ASCII raw.
J13 unreadable Values MUST NOT nest deeper than 64 levels.
K01 incomplete The five files of section 3 (protocol_source, protocol, environment, template, run) MUST be present.
K02 incomplete run.json MUST have its members, of the stated types.
K03 incomplete protocol.json MUST equal protocol.toml as parsed and MUST have its tables.
K04 incomplete run.json and the stack's outputs MUST name the frozen protocol and its SHA-256.
K05 incomplete environment.json MUST have its members, and target, grade and run.json MUST agree (local is emulated; aws is aws, or emulated behind an endpoint that is not AWS's).
K06 incomplete run.json MUST list at least one trial unless its stage is probe, no trial twice, and a trial of each of its scenarios and planned cells.
K07 incomplete Every folder under trials/ MUST belong to a trial or the probe of run.json.
K08 incomplete run.json MUST name a transport probe whose chain is valid.
K09 incomplete template.json MUST be an object with Resources.
T01 incomplete Every trial MUST have its files: trial, journal, ledger, and unless it is the probe queues, and if its variant is durable durable.
T02 incomplete trial.json MUST have its members, of the stated types.
T03 incomplete trial.json and run.json MUST agree on run, trial, kind, scenario and variant.
R01 incomplete A read record MUST have exactly its members, of the stated types.
R02 incomplete A read MUST stand in its own file under its own name, service and operation.
R03 incomplete The pages of one read MUST be numbered 1, 2, 3 ... without a gap or a contradiction.
R04 incomplete Each page's marker_in MUST be the page before's marker_out and the request's start key, its marker_out the response's, and the last page's, and only the last page's, MUST be null.
R05 incomplete A DynamoDB read MUST be consistent.
R06 incomplete A ledger or journal read MUST be a Query of the base table by the trial's key alone, with no index, filter or projection.
R07 incomplete A Query's Count, and its ScannedCount if it has one, MUST be the number of its Items.
R08 incomplete A read that the verdict needs MUST NOT have ended in an API error.
R09 incomplete A read MUST name the stack's own table, queue or function.
G01 incomplete Every journal item MUST be a well-formed event, COUNTER or REQUEST of the trial.
G02 incomplete Event sequence numbers MUST be 1..n without a gap or a repeat.
G03 incomplete The COUNTER MUST equal the last sequence number.
G04 incomplete Event ids MUST be unique, and caused_by MUST cite an earlier event.
G05 incomplete The first event MUST be trial_opened and the last MUST be trial_closed, once each.
G06 incomplete Every event type MUST be one of its source.
G07 incomplete REQUEST MUST be of the trial's refund and say FINISHED exactly if one request_finished event exists, with reason SUCCEEDED if it cites a response_received and PROVIDER_REFUSED if it cites an attempt_failed.
G08 incomplete A dispatch MUST have at most one outcome, and every outcome MUST cite a dispatch.
G09 incomplete Every dispatch MUST be settled at the provider: received and answered, released or given up, or definitely refused and not committed.
G10 incomplete REQUEST's effect_knowledge MUST be UNKNOWN after a timeout or an unknown outcome, and KNOWN or UNKNOWN once the request is finished.
L01 incomplete Every ledger item MUST be a well-formed transaction of the trial.
L02 incomplete There MUST be at least two sound ledger snapshots, numbered from 1 without a gap.
L03 incomplete The last two snapshots MUST be equal, and no transaction MUST vanish between snapshots or change once it is not PENDING.
L04 incomplete Ledger and journal MUST agree: each successful transaction is one provider_commit_confirmed with its sequence number, dispatch and attempt, each such event is in the ledger, and every answer names one of them.
L05 incomplete A transaction's status MUST be one of SUCCEEDED, FAILED and PENDING.
L06 incomplete No transaction MUST be PENDING.
Q01 incomplete There MUST be as many samples of the source queue as of the DLQ, and of each at least as many as the protocol's settle window has.
Q02 incomplete In the settle window the source queue MUST be empty: nothing visible, in flight or delayed.
Q03 incomplete In the settle window the DLQ MUST be empty.
Q04 incomplete The request MUST be finished.
Q05 incomplete The trial MUST have ended because it was quiescent, and without an error.
Q06 incomplete The samples of each queue MUST stand in time order, to within a second.
H01 incomplete The versions of the durable function MUST be listed.
H02 incomplete Executions MUST be listed unqualified and for every listed version, without a filter and never by alias alone, and none MUST be read that no listing shows.
H03 incomplete Every execution that may be the trial's MUST be terminal.
H04 incomplete The history of each of the trial's executions MUST be full: from ExecutionStarted to the one terminal event that matches its status.
H05 incomplete Two different history events MUST NOT share an EventId.
H06 incomplete A field that the verdict needs MUST NOT be truncated.
H07 incomplete At least one execution MUST be the trial's own.
E01 violation One approved refund MUST have at most one successful transaction.
E02 violation The successful transactions of one payment MUST NOT exceed the captured amount.
E03 violation The set of successful transactions MUST equal the authorised effect: request, payment, amount and currency.
E04 violation One approved refund MUST have at least one successful transaction once the trial is complete and quiescent.
V01 invalid The trial's request MUST be the protocol's.
V02 invalid Scenario and variant MUST be a cell of the protocol's order.
V03 invalid The one message sent MUST be the trial's request, every delivery MUST be of that message and every dispatch of a delivery.
V04 invalid Every number of the deployed template MUST be the protocol's.
V05 unproven The deployed template MUST hold every resource whose numbers the protocol fixes.
V06 invalid The provider client MUST put exactly one request on the wire for each attempt, and the frozen versions and SDK config MUST say so.
V07 invalid The driver MUST send once, with one attempt, and MUST NOT receive from the source queue.
V08 invalid CONTROL MUST NOT have a timeout or an unknown outcome.
V09 invalid CONTROL MUST NOT have a barrier.
V10 invalid COMMIT_THEN_TIMEOUT MUST have its barrier armed before the message is sent.
V11 invalid By sequence, the held commit MUST come before the timeout, the timeout before the release, the release before the released response.
V12 invalid The timeout MUST cite the held dispatch, the release that timeout, the released response that release, and the barrier item MUST say the same.
V13 invalid The timeout's own duration MUST reach the protocol's deadline.
V14 invalid No barrier MUST expire.
V15 invalid A retry MUST have been possible after the timeout.
V16 invalid The treatment MUST have fired: one held commit, one timeout of its dispatch, one release, one released response.
V17 invalid Each dispatch MUST reach the provider at most once and commit at most once.
N01 note Wall clocks SHOULD NOT contradict the sequence by more than a second, and no duration SHOULD be negative.
"""


def _parse(table: str) -> dict[str, Code]:
    codes = {}
    for line in table.strip().splitlines():
        code, consequence, clause = line.split(" ", 2)
        codes[code] = Code(code, consequence, clause)
    return codes


CODES: dict[str, Code] = _parse(_TABLE)
