# SPDX-License-Identifier: Apache-2.0

"""Invariants of the whole cloud, as pure checks over a snapshot.

Whoever can read a cloud fills in what it knows of a Snapshot; what it leaves
out is not checked. Tests, exploration, ``nova-preempt-manage verify`` and the
load on a real cloud call the same functions.
"""

from collections.abc import Callable, Iterable
import dataclasses
import inspect

from nova_preempt.core import record_invariants
from nova_preempt.core import service_invariants
from nova_preempt.core import space_invariants
from nova_preempt.core.invariant_snapshot import Snapshot

#: Yields a sentence for each breach.
Find = Callable[[Snapshot], Iterable[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Invariant:
    """A condition that every snapshot of a cloud satisfies.

    :ivar find: yields a sentence for each breach; its docstring says what
        must be so, and what would be otherwise
    :ivar is_at_rest: whether it holds only once nothing is under way
    """

    find: Find
    is_at_rest: bool = False

    @property
    def name(self) -> str:
        """The name of it."""
        return self.find.__name__

    @property
    def sentence(self) -> str:
        """The condition in one sentence, the first line of its docstring."""
        return inspect.cleandoc(self.find.__doc__ or "").partition("\n")[0]


_SOURCES = (space_invariants, record_invariants, service_invariants)
ALL = (
    *(Invariant(find) for source in _SOURCES for find in source.ALWAYS),
    *(Invariant(find, is_at_rest=True) for source in _SOURCES
      for find in source.AT_REST))


def breaches(snapshot: Snapshot, is_at_rest: bool = False) -> list[str]:
    """Return the violations, as "name: sentence".

    :param is_at_rest: whether nothing is under way
    """
    return [f"{each.name}: {text}" for each in ALL
            if is_at_rest or not each.is_at_rest
            for text in each.find(snapshot)]
