# SPDX-License-Identifier: Apache-2.0
"""Faults that were mended, each of which can be put back.

The test of the test: exploration has to find each of them. One that it does
not find means that an operation, a fault or an invariant is missing.
"""

import contextlib
from unittest import mock

#: {name: function that returns the mock patch that puts it back}
ALL = {}


def fault(function):
    """Note a function that returns a patch under its name."""
    ALL[function.__name__] = function
    return function


@contextlib.contextmanager
def put_back(name):
    """Within, the fault of this name is there; '' for none."""
    if not name:
        yield
        return
    with ALL[name]():
        yield


@fault
def claim_without_intent():
    """Evict victims without a look whether the space is still held."""
    from nova_preempt.handover import eviction_view
    return mock.patch.object(
        eviction_view.EvictionView, 'look_at_claim',
        lambda self, unwanted: self._facts.update(is_held=True))
