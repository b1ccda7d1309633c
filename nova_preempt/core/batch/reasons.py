# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Why a request was not placed, in words with numbers."""

from __future__ import annotations

from collections.abc import Sequence

from nova_preempt.core.batch import model
from nova_preempt.core.batch.grouping import Bundle
from nova_preempt.core.batch.grouping import Class
from nova_preempt.core.batch.model import Reason
from nova_preempt.core.batch.table import NO
from nova_preempt.core.batch.table import Table

_FULL = Reason(
    model.NO_ROOM,
    "Each host that has room has as many servers of a group as it takes.",
)


def explain(
    bundle: Bundle, f: int, before: Table, after: Table
) -> Reason:
    """Return why none of a bundle was placed.

    :param f: its class in the table
    :param before: as it was before anything of the batch was placed
    :param after: as it is now
    """
    problem = before.problem
    if not problem.allowed[f].any():
        return _no_host(bundle.kind, problem.hosts)
    if not (before.scores[f] > NO).any():
        width = len(problem.scorer.largest)
        if bundle.kind.apart and (problem.allowed[f] & (
            problem.demand[f, :width] <= before.free[:, :width]
        ).all(axis=1)).any():
            return _FULL
        return _no_room(bundle, problem.hosts, problem.allowed[f].tolist())
    fits = int(after.times(f, bundle.least).sum())
    if 1 < bundle.least > fits:
        return Reason(
            model.LEAST,
            f"{bundle.least} servers start together, and there is room for "
            f"{fits}.",
        )
    return Reason(
        model.TAKEN, "There was room, which others of the batch have got."
    )


def _no_host(kind: Class, hosts: Sequence[model.HostState]) -> Reason:
    """Which of its constraints leaves no host."""
    if not hosts:
        return Reason(model.NO_HOST, "There is no host.")
    left = list(hosts)
    for text, matches in (
        ("is one of those it may be on",
         lambda host: kind.hosts is None or host.name in kind.hosts),
        (f"is in zone {kind.zone}",
         lambda host: kind.zone in ("", host.zone)),
        (f"has {', '.join(sorted(kind.traits))}",
         lambda host: kind.traits <= host.traits),
        (f"is without {', '.join(sorted(kind.forbidden))}",
         lambda host: not kind.forbidden & host.traits),
    ):
        some = [host for host in left if matches(host)]
        if not some:
            return Reason(
                model.NO_HOST,
                f"Of {len(left)} hosts that are left by what else it asks "
                f"for, none {text}.",
            )
        left = some
    return Reason(
        model.NO_HOST,
        "No host grants these amounts, whatever is free: its inventory "
        "lacks the class, or has other units (min_unit, max_unit, "
        "step_size).",
    )


def _no_room(
    bundle: Bundle, hosts: Sequence[model.HostState], allowed: Sequence[bool]
) -> Reason:
    """What lacks everywhere, or where most is free."""
    some = [host for host, may in zip(hosts, allowed, strict=True) if may]
    texts = []
    for name, amount in bundle.kind.demand:
        most = max(host.free.get(name, 0) for host in some)
        if most < amount:
            texts.append(f"{name}: {amount} asked for, {max(0, most)} free")
    what = "it"
    if len(bundle.members) > 1 or bundle.members[0].together:
        servers = sum(member.count for member in bundle.members)
        what = f"the {servers} servers that have to be on one host"
    text = f"Of {len(some)} hosts none has room for {what}"
    if texts:
        return Reason(
            model.NO_ROOM, f"{text}; at most ({'; '.join(texts)})."
        )
    return Reason(model.NO_ROOM, f"{text} in all classes at once.")
