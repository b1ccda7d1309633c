# SPDX-License-Identifier: Apache-2.0
"""Tells whether the owner of a decision is alive."""

from __future__ import annotations

from collections.abc import Collection, Mapping


def is_orphan(
    uuid: str, owner: str, age_s: float, *, me: str,
    working_on: Collection[str], leases: Mapping[str, bool], timeout_s: float,
) -> bool:
    """Whether a decision has nobody who finishes it.

    1. One of ours, if no thread of this process works on it: it waits until
       Nova has finished with a victim, or has failed in a way that nobody
       foresaw.
    2. One whose owner has a lease, if that has run out. How long ago its owner
       gave a sign is no matter, nor by which clock.
    3. One that was given up, or whose owner has no lease: once nothing has
       happened to it for long enough. What was asked for, and may still
       arrive, has done so by then.

    :param owner: the name of its owner, empty if it was given up
    :param age_s: the time since its last sign of life
    :param me: the name of this process
    :param working_on: the uuids of decisions that this process works on
    :param leases: whether each owner's lease has not run out
    :param timeout_s: how long the others are waited for
    """
    if owner == me:
        return uuid not in working_on
    if owner in leases:
        return not leases[owner]
    return age_s >= timeout_s
