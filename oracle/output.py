"""What leaves the oracle: the answer on stdout, one sentence on stderr, and the exit code that fits both.

Everything is written and flushed here, while a failure can still be told. What is left to the flush at the
interpreter's exit ends with its own 120, and a print that raises ends with 1, which would mean `fail`.
"""

from __future__ import annotations

import os
import sys

HARNESS = 70


def answer(text: str, code: int) -> int:
    """Write the answer and a line feed to stdout; the exit code to end with.

    A reader that closed the pipe (`| head -1`) has seen enough: the answer was reached and keeps its code.
    An answer that could not be written for any other reason, a full disk, is none: 70.
    """
    if sys.stdout is None:
        return complain("cannot write the answer: stdout is closed; this is no verdict", HARNESS)
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        _let_go(sys.stdout)
    except OSError as error:
        _let_go(sys.stdout)
        return complain(
            f"cannot write the answer to stdout: {error.strerror or error}; this is no verdict, "
            "ask again with another destination",
            HARNESS,
        )
    return code


def complain(sentence: str, code: int) -> int:
    """Say on stderr why there is no answer; a stderr that is gone or full does not change the exit code."""
    if sys.stderr is not None:
        try:
            _write(sys.stderr, f"oracle: {sentence}")
        except OSError:
            _let_go(sys.stderr)
    return code


def _write(stream, text: str) -> None:
    """All of the text, in what the stream can show; an unbuffered one (`python -u`) may take a part of it."""
    data = f"{text}\n".encode(stream.encoding, "backslashreplace")
    while data:
        data = data[stream.buffer.write(data) :]
    stream.flush()


def _let_go(stream) -> None:
    """Send what is left in the stream's buffer nowhere, or the interpreter would try it again at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
