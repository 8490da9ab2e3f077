"""Canonical JSON and read records: how the runner turns AWS answers into evidence lines.

This is the writer's half of evidence/FORMAT.md. The oracle has its own reader and shares
nothing with this module, on purpose.
"""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from runner.disk import whole_lines

MAX_SAFE_INTEGER = 2**53 - 1

# Where each paginated operation keeps its marker: (request key, response key).
MARKERS = {
    "Query": ("ExclusiveStartKey", "LastEvaluatedKey"),
    "ListVersionsByFunction": ("Marker", "NextMarker"),
    "ListDurableExecutionsByFunction": ("Marker", "NextMarker"),
    "GetDurableExecutionHistory": ("Marker", "NextMarker"),
    "FilterLogEvents": ("nextToken", "nextToken"),
    "DescribeStacks": ("NextToken", "NextToken"),
    "DescribeLogGroups": ("nextToken", "nextToken"),
    "GetResources": ("PaginationToken", "PaginationToken"),
    "ListAliases": ("Marker", "NextMarker"),
    "ListEventSourceMappings": ("Marker", "NextMarker"),
    "ListFunctions": ("Marker", "NextMarker"),
    "ListLayers": ("Marker", "NextMarker"),
    "ListLayerVersions": ("Marker", "NextMarker"),
    "ListQueues": ("NextToken", "NextToken"),
    "ListRoles": ("Marker", "Marker"),
    "ListStreams": ("ExclusiveStartStreamArn", "LastEvaluatedStreamArn"),
    "ListTables": ("ExclusiveStartTableName", "LastEvaluatedTableName"),
}


def canonical(value: Any) -> bytes:
    """Return `value`, normalised, as one line of canonical JSON, newline included."""
    text = json.dumps(
        normalise(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8") + b"\n"


def normalise(value: Any) -> Any:
    """Return `value` in the canonical subset.

    Datetimes become ISO-8601 strings in UTC, bytes `{"$base64": ...}`, floats and integers
    beyond 2^53-1 `{"$decimal": ...}`. Strings are kept as they are, never normalised.
    """
    if isinstance(value, dict):
        return {str(k): normalise(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [normalise(v) for v in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes | bytearray):
        return {"$base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, float):
        return {"$decimal": repr(value)}
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_SAFE_INTEGER:
        return {"$decimal": str(value)}
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form
            return {"$base64": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}
    return value


class Reads:
    """Collects read records: every page of every read, raw, with its markers.

    `now_ms` is the injected wall clock. `lines` grows in the order in which answers came. Records that
    cannot be read again later (samples over time) are also kept in the file `keep`, line by line, and are
    found there by whoever takes the run up after its death.
    """

    def __init__(self, now_ms, keep: Path | None = None):
        self._now_ms = now_ms
        self._keep = keep
        self.lines: list[dict[str, Any]] = []
        if keep is not None and keep.exists():
            self.lines = [json.loads(line) for line in whole_lines(keep).splitlines()]
            keep.write_bytes(self.to_bytes())

    def all_pages(
        self, read: str, client: Any, operation: str, request: dict[str, Any], of: str = ""
    ) -> list[dict[str, Any]]:
        """Make the call, follow its markers to the end, and return the raw responses.

        An API error ends the read and is recorded as a line of its own; the pages before it
        are returned. Nothing is raised for it, because what could not be read is evidence too.
        """
        request_key, response_key = MARKERS.get(operation, ("", ""))
        responses: list[dict[str, Any]] = []
        marker = None
        for page in range(1, 10_000):
            asked = request if marker is None else {**request, request_key: marker}
            response = self.once(read, client, operation, asked, of=of, page=page, marker_in=marker)
            if response is None:
                return responses
            responses.append(response)
            marker = response.get(response_key) if response_key else None
            if not marker:
                return responses
        return responses

    def once(
        self,
        read: str,
        client: Any,
        operation: str,
        request: dict[str, Any],
        *,
        of: str = "",
        page: int = 1,
        marker_in: Any = None,
    ) -> dict[str, Any] | None:
        """Make one call, record it, and return its response, or None for a recorded error."""
        line: dict[str, Any] = {
            "read": read,
            "of": of,
            "page": page,
            "service": client.meta.service_model.service_name,
            "operation": operation,
            "request": normalise(request),
            "marker_in": normalise(marker_in),
            "marker_out": None,
        }
        response = None
        try:
            response = getattr(client, _method(client, operation))(**request)
        except ClientError as error:
            details = error.response.get("Error", {})
            line["error"] = {"code": str(details.get("Code", "")), "message": str(details.get("Message", ""))}
        except BotoCoreError as error:
            line["error"] = {"code": type(error).__name__, "message": str(error)}
        else:
            response.pop("ResponseMetadata", None)
            line["response"] = normalise(response)
            _, response_key = MARKERS.get(operation, ("", ""))
            line["marker_out"] = normalise(response.get(response_key) or None) if response_key else None
        line["at_ms"] = self._now_ms()
        self.lines.append(line)
        if self._keep is not None:
            with self._keep.open("ab") as file:
                file.write(canonical(line))
        return response

    def to_bytes(self) -> bytes:
        """Return the records as JSON lines."""
        return b"".join(canonical(line) for line in self.lines)


def _method(client: Any, operation: str) -> str:
    return {api: method for method, api in client.meta.method_to_api_mapping.items()}[operation]
