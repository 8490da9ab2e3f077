"""Structured logs: the trial and the attempt on every line of an invocation."""

import functools
import logging

from aws_lambda_powertools import Logger


@functools.cache
def _logger() -> Logger:
    # Made on first use, because POWERTOOLS_SERVICE_NAME is part of the environment.
    return Logger()


def bound_logger(**keys: str | int | None) -> logging.Logger:
    """The logger of this invocation. Keys of an earlier one, in a warm environment, are dropped."""
    logger = _logger()
    logger.structure_logs(append=False, **keys)
    return logger
