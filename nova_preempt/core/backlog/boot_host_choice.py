# SPDX-License-Identifier: Apache-2.0
"""Checks who may use the hosts that a pass has chosen for a boot.

The boot is made as its user, who must not choose hosts: so it carries a
secret, and only the scheduler knows the hosts behind it. The secret is valid
once, for a short time, and for exactly the request that it was made for. Any
other request with it is scheduled without these hosts, so the secret grants
nothing that the boot itself would not get.
"""

from collections.abc import Mapping
import dataclasses
import datetime

HINT = "backlog_hosts"

CREATE = "create"


@dataclasses.dataclass(frozen=True, slots=True)
class BootParameters:
    """The project, user, flavor and number of servers of a request to Nova.

    :param flavor_id: as users see it
    :param count: how many servers
    """

    project_id: str
    user_id: str
    flavor_id: str
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class ChosenHosts(BootParameters):
    """The hosts that are chosen for the servers of a boot.

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


def refusal(choice: ChosenHosts | None, asked: BootParameters,
        now: datetime.datetime) -> str:
    """Return why a request may not use the chosen hosts, '' if it may.

    :param choice: the choice of its secret, None if there is none
    """
    if choice is None:
        return "it is unknown"
    if choice.used:
        return "it was already used"
    if choice.expires_at <= now:
        return f"it expired at {choice.expires_at}"
    for field in dataclasses.fields(BootParameters):
        if getattr(choice, field.name) != getattr(asked, field.name):
            return f"it is for another {field.name}"
    return ""


class UnplacedServers:
    """Counts the servers that are still to be placed on each chosen host.

    :param hosts: {host: how many}
    """

    def __init__(self, hosts: Mapping[str, int]) -> None:
        self._left = dict(hosts)

    def take(self, host: str) -> None:
        """Count a server on a host; other hosts are ignored."""
        if host in self._left:
            self._left[host] -= 1

    def is_next(self, host: str) -> bool:
        """Tell whether a host still gets a server."""
        return self._left.get(host, 0) > 0
