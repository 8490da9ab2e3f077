"""Tests of the oracle. They import oracle and the standard library, pytest and Hypothesis; never runner or
lambdas.
"""
