"""The least time a run needs: the protocol's own deadlines, delays and settle windows, in seconds."""

from runner.names import COMMIT_THEN_TIMEOUT, CONVENTIONAL, VARIANTS
from runner.protocol import Cell, Protocol


def protocol_floor_s(protocol: Protocol, cells: tuple[Cell, ...], sequential: bool) -> float:
    """Return the floor of a run: the probe's deadline, then the longest variant (or all in turn)."""
    probe = protocol.caller.deadline_ms / 1000
    by_variant = [
        sum(_cell_s(protocol, cell) for cell in cells if cell.variant == variant) for variant in VARIANTS
    ]
    return probe + (sum(by_variant) if sequential else max(by_variant))


def _cell_s(protocol: Protocol, cell: Cell) -> float:
    settle = (protocol.quiescence.samples - 1) * protocol.quiescence.interval_s
    if cell.scenario != COMMIT_THEN_TIMEOUT:
        return settle
    if cell.variant == CONVENTIONAL:
        # The visibility timeout counts from the receive, so the deadline lies inside it.
        return protocol.conventional.visibility_timeout_s + settle
    return protocol.caller.deadline_ms / 1000 + protocol.durable.step_retry_delay_s + settle
