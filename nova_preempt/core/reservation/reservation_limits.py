# SPDX-License-Identifier: Apache-2.0

"""Limits on the reservations of a project."""

from collections.abc import Collection, Iterable, Mapping

from nova_preempt.core.reservation import reservation_model

#: Names of options in [reservation], and of limits of a project. -1 is no
#: limit.
LIMITS = (
    "max_reservations",
    "max_hosts",
    "max_duration_s",
    "max_advance_s",
    "max_created_per_day",
)


class LimitExceeded(Exception):
    """Raised if a limit is exceeded; names the limit and the amounts."""


class Limits:
    """The limits of one project.

    :param values: {name in LIMITS: number}
    """

    def __init__(self, values: Mapping[str, int]) -> None:
        self._values = values

    def get(self, name: str) -> int | None:
        """Return the limit, None if there is none."""
        value = self._values[name]
        return None if value < 0 else value

    def check(self, name: str, asked: int, used: int = 0) -> None:
        """Raise if a limit is exceeded.

        :raises LimitExceeded:
        """
        allowed = self.get(name)
        if allowed is not None and used + asked > allowed:
            raise LimitExceeded(
                f"The limit {name} would be exceeded: {allowed} allowed, "
                f"{used} used, {asked} requested.")

    def check_request(
        self, quantity: int, duration_s: int, in_s: int) -> None:
        """Raise if a request exceeds limits whenever it starts.

        :param in_s: how far ahead it may begin at the earliest
        """
        self.check("max_hosts", quantity)
        self.check("max_duration_s", duration_s)
        self.check("max_advance_s", in_s)

    def check_usage(
        self, quantity: int, start_s: int, end_s: int,
        others: Collection[reservation_model.Reservation], ) -> None:
        """Raise if a reservation exceeds limits together with the others.

        :param others: the other open reservations of the project
        """
        self.check("max_reservations", 1, len(others))
        self.check_hosts(quantity, start_s, end_s, others)

    def check_hosts(
        self, quantity: int, start_s: int, end_s: int,
        others: Collection[reservation_model.Reservation], ) -> None:
        """Raise if the project would have too many hosts at once."""
        if self.get("max_hosts") is not None:
            self.check("max_hosts", quantity,
                       hosts_at_once(others, start_s, end_s))


def hosts_at_once(
    reservations: Iterable[reservation_model.Reservation], start_s: int,
    end_s: int) -> int:
    """Return the most hosts reserved at any time of [start_s, end_s)."""
    changes = []
    for each in reservations:
        begin_s, finish_s = max(each.start_s, start_s), min(each.end_s, end_s)
        if begin_s < finish_s:
            changes += [(begin_s, each.quantity), (finish_s, -each.quantity)]
    most = hosts = 0
    # At the same second, hosts are released before others are reserved.
    for _time_s, change in sorted(changes):
        hosts += change
        most = max(most, hosts)
    return most
