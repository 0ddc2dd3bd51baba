# SPDX-License-Identifier: Apache-2.0
"""How much of a thing a test does: `tests/run` has a quarter of an hour for everything, `tests/run --long` the time that it takes."""
LONG = False  # set by tests/integration/conftest.py before a test is read


def amount(short, long):
    return long if LONG else short
