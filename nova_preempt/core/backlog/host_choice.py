# SPDX-License-Identifier: Apache-2.0
"""Hosts that a pass has chosen for a boot, and who may be put there.

The boot is made as its user, who must not choose hosts: so it names a secret,
and what it stands for is known to the scheduler alone. It is for one request
of Nova that asks for just that, once and not for long. Whatever else comes
with it is placed as if it had not; so there is nothing to be had by it that
the boot itself would not have got.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime

HINT = "backlog_hosts"

CREATE = "create"


@dataclasses.dataclass(frozen=True, slots=True)
class BootRequest:
    """What Nova is asked for.

    :param flavor_id: as users see it
    :param count: how many servers
    """

    project_id: str
    user_id: str
    flavor_id: str
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class Choice(BootRequest):
    """Where the servers of a boot are to start.

    :param number: of the boot, of this request
    :param hosts: {host: how many}
    :param expires_at: naive, in UTC
    :param used: whether a scheduler has been there already
    """

    request_uuid: str
    number: int
    hosts: Mapping[str, int]
    expires_at: datetime.datetime
    used: bool = False


def refusal(choice: Choice | None, asked: BootRequest,
        now: datetime.datetime) -> str:
    """Say why a request does not get the hosts, '' if it does.

    :param choice: what its secret stands for, None if that is nothing
    """
    if choice is None:
        return "nobody knows it"
    if choice.used:
        return "it was used before"
    if choice.expires_at <= now:
        return f"it was to be used before {choice.expires_at}"
    for field in dataclasses.fields(BootRequest):
        if getattr(choice, field.name) != getattr(asked, field.name):
            return f"it is for another {field.name}"
    return ""


class RemainingServers:
    """How many servers are still to be put on each of the chosen hosts.

    :param hosts: {host: how many}
    """

    def __init__(self, hosts: Mapping[str, int]) -> None:
        self._left = dict(hosts)

    def take(self, host: str) -> None:
        """Put one there; fine if that was not chosen."""
        if host in self._left:
            self._left[host] -= 1

    def is_next(self, host: str) -> bool:
        """Say whether one more is to be there."""
        return self._left.get(host, 0) > 0
