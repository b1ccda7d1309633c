# SPDX-License-Identifier: Apache-2.0
"""Makes the placer of a batch, and places identical servers."""

from collections.abc import Callable, Iterable, Mapping
import importlib
from typing import Protocol

from nova_preempt.core.batch import batch_model
from nova_preempt.core.model import Resources

AFFINITY = "affinity"
ANTI_AFFINITY = "anti-affinity"

_UUID = "servers"
_GROUP = "group"


class NotInstalled(Exception):
    """Raised if a library is missing that the options need."""

    def __init__(self, library: str, extra: str, needed_by: str) -> None:
        super().__init__(
            f"{needed_by} needs {library}, which cannot be imported: install "
            f"nova-preempt[{extra}]")
        self.library = library
        self.extra = extra


class Placer(Protocol):
    """Places a batch."""

    def place(
        self, requests: Iterable[batch_model.Request],
        hosts: Iterable[batch_model.HostState],
        members: Mapping[str, Mapping[str, int]] | None = None,
    ) -> batch_model.BatchResult:
        """Return the hosts of requests, see batch_placement.BatchPlacer."""


def make(
    options: batch_model.Options, monotonic: Callable[[], float] | None = None
) -> Placer:
    """Return the placer for these options.

    To be called when a service starts, so that a missing library is found
    here.

    :param monotonic: a clock in seconds, by which all solvers of a batch
        share its time limit. Without one each of them may take all of it.
    :raises NotInstalled: numpy or scipy is missing
    """
    needed = [("numpy", "batch", f"mode {options.mode}")]
    if options.mode != batch_model.GREEDY:
        needed.append(("scipy.optimize", "batch", f"mode {options.mode}"))
    for library, extra, needed_by in needed:
        try:
            importlib.import_module(library)
        except ImportError as exc:
            raise NotInstalled(library, extra, needed_by) from exc
    from nova_preempt.core.batch import batch_placement

    return batch_placement.BatchPlacer(options, monotonic)


def place_identical(placer: Placer, wanted: Resources, count: int,
        hosts: Iterable[batch_model.HostState], policy: str = "",
        most: int = 1) -> Mapping[str, int]:
    """Return {host: how many of identical servers}, {} if not all fit.

    :param wanted: of each server
    :param policy: of their server group, as Nova names it
    :param most: of anti-affinity: the most on a host
    """
    found = placer.place([batch_model.Request(_UUID, 0, wanted, count, count,
        together=_GROUP if policy == AFFINITY else "", apart=(
        batch_model.AntiAffinity(_GROUP, most),) if policy == ANTI_AFFINITY
        else ())], hosts)
    return found.placed.get(_UUID, {})
