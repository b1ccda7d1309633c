# SPDX-License-Identifier: Apache-2.0
"""Checks a request against the Nova quota of its user."""

from __future__ import annotations

from collections.abc import Mapping

from nova_preempt.core.backlog import backlog_model

# As GET /limits has them: what may be used, what is, and of which resource
# classes a server uses that much; none: one each.
_LIMITS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("servers", "maxTotalInstances", "totalInstancesUsed", ()),
    # Nova counts pinned cores as others.
    ("vCPUs", "maxTotalCores", "totalCoresUsed", ("VCPU", "PCPU")),
    ("MiB of RAM", "maxTotalRAMSize", "totalRAMUsed", ("MEMORY_MB",)),
)


def why_not(request: backlog_model.Request, limits: Mapping[str, int]) -> str:
    """Say why the servers that start together are more than the quota allows.

    :param limits: the absolute ones of GET /limits
    :returns: '' where they are not, in one of its flavors
    """
    reasons = [
        _why_not(item, backlog_model.least(request), limits)
        for item in request.alternatives]
    return next(iter(reasons), "") if all(reasons) else ""


def _why_not(
    wanted: backlog_model.Alternative, count: int, limits: Mapping[str, int]
) -> str:
    for name, most, used, classes in _LIMITS:
        limit = limits.get(most, -1)
        if limit < 0:  # there is none
            continue
        left = limit - limits.get(used, 0)
        amount = sum(
            wanted.resources.get(name, 0) for name in classes
        ) if classes else 1
        if amount and count * amount > left:
            return (f"the quota of its user leaves {max(0, left)} {name}, "
                    f"and it needs {count * amount}.")
    return ""
