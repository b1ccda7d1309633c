# SPDX-License-Identifier: Apache-2.0

"""Validates new requests and their changes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
import datetime
from typing import Any

from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import reservation_rules
from nova_preempt.core.classes import class_of_server
from nova_preempt.core.reservation import reservation_model


class InvalidRequest(Exception):
    """Raised for an invalid request; names the field."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field
        self.text = text


# The longest flavor id in Nova.
_MAX_ID = 255


@dataclasses.dataclass(frozen=True, slots=True)
class ServerCounts:
    """The number of servers, and the minimum that starts together."""

    most: int
    least: int


def counts(
    count: int | None, least_count: int | None, server: Mapping[str, Any],
    max_count: int, ) -> ServerCounts:
    """Return the requested numbers of servers.

    The request's own fields override min_count and max_count in Nova's body,
    which mean what they mean for Nova. A ``count`` alone is all or nothing.

    :param server: Nova's, with or without min_count and max_count
    :param max_count: the operator's limit
    :raises InvalidRequest:
    """
    fewest = _number(server, "min_count")
    most = count or _number(server, "max_count") or fewest or least_count or 1
    least = next(
        some for some in (least_count, fewest, count, 1) if some is not None)
    field = "count" if count else "body.server.max_count"
    if most > max_count:
        raise InvalidRequest(field,
            f"{most} is more than the allowed {max_count}")
    if least > most:
        raise InvalidRequest(
            "least_count" if least_count else "body.server.min_count",
            f"{least} is more than the {most} servers of the request")
    return ServerCounts(most, least)


def _number(server: Mapping[str, Any], name: str) -> int | None:
    """Return a count in Nova's body, where text is valid as well."""
    value = server.get(name)
    if value is None:
        return None
    field = f"body.server.{name}"
    try:
        found = int(value)
        # Nova's schema, which does not see it, would refuse these.
        if isinstance(value, bool) or (
            not (value.isascii() and value.isdecimal())
            if isinstance(value, str) else found != value):
            raise ValueError(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidRequest(field, f"{value!r} is not an integer") from None
    if found < 1:
        raise InvalidRequest(field, f"{found} is less than 1")
    return found


def flavors(
    wanted: Sequence[str] | None, server: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the ids of flavors in order of preference.

    The flavors of the request, else the flavor in Nova's body.

    :raises InvalidRequest: there is none, or a duplicate, or the flavor in the
        body is not among them
    """
    own = server.get("flavorRef")
    own = None if own is None else str(own)
    if own is not None and len(own) > _MAX_ID:
        raise InvalidRequest("body.server.flavorRef",
            f"it is longer than {_MAX_ID} characters")
    found = tuple(wanted or ()) or ((own,) if own else ())
    if not found:
        raise InvalidRequest("flavors",
            "either it or body.server.flavorRef is required")
    if len(set(found)) < len(found):
        raise InvalidRequest("flavors", "it has a duplicate")
    if own is not None and own not in found:
        raise InvalidRequest("body.server.flavorRef",
            f"{own} is not in the field flavors")
    return found


def check_ladder(
    ladder: str, priorities: backlog_model.SlaPriorities | None,
    others: Mapping[str, Any], server: Mapping[str, Any], ) -> None:
    """Refuse fields that conflict with a ladder.

    :param others: the other fields of the request
    :raises InvalidRequest:
    """
    if not ladder:
        return
    if priorities is None:
        raise InvalidRequest("ladder", "it requires the field priorities")
    said = [field for field in ("flavors", "count", "least_count")
            if others.get(field) is not None]
    said += [f"body.server.{name}" for name in (
        "flavorRef", "min_count", "max_count") if name in server]
    if said:
        raise InvalidRequest(said[0],
            "it must not be set together with a ladder")


def check_change(request: backlog_model.Request,
                 values: Mapping[str, Any]) -> None:
    """Refuse changes of values that a ladder has decided.

    The number of servers and the category of hosts are fixed with the request.

    :param values: the new values, by name
    :raises InvalidRequest:
    """
    if not values.keys() & {"priorities", "count", "least_count"}:
        return
    before = request.priorities
    priorities = values.get("priorities", before)
    check_ladder(request.ladder, priorities, values, {})
    if not request.ladder or before is None:
        return
    for name in ("redundancy", "reputation"):
        now = getattr(before, name)
        if getattr(priorities, name) != now:
            raise InvalidRequest(f"priorities.{name}",
                f"the request has a ladder, so that it must remain {now}")


def check_group(ladder: str, body: Mapping[str, Any]) -> None:
    """Refuse a server group for a request that has its own group.

    :param body: Nova's, with its hints next to the server
    :raises InvalidRequest:
    """
    for name, hints in body.items():
        if ladder and name != "server" and isinstance(
            hints, Mapping) and "group" in hints:
            raise InvalidRequest(f"body.{name}.group",
                "it must not be set together with a ladder")


def check_reservations(body: Mapping[str, Any]) -> None:
    """Refuse a reservation hint that is malformed.

    :param body: Nova's, with its hints next to the server
    :raises InvalidRequest:
    """
    for name in reservation_rules.HINTS:
        try:
            reservation_model.ids_in_hints(body.get(name))
        except reservation_model.InvalidHint as exc:
            raise InvalidRequest(
                f"body.{name}.{reservation_model.HINT}", str(exc)) from None


def check_server(server: Mapping[str, Any], count: int) -> None:
    """Refuse members that a queued request cannot ask of Nova.

    And members that Nova refuses for several servers.

    :raises InvalidRequest:
    """
    if server.get("return_reservation_id"):
        raise InvalidRequest("body.server.return_reservation_id",
            "it is not supported, since the request lists its servers")
    if count == 1:
        return
    if server.get("hostname"):
        raise InvalidRequest(
            "body.server.hostname", f"{count} servers cannot share a hostname")
    networks = server.get("networks")
    for network in networks if isinstance(networks, list) else ():
        for name in ("port", "fixed_ip"):
            if isinstance(network, Mapping) and network.get(name):
                raise InvalidRequest("body.server.networks",
                    f"{count} servers cannot share a {name}")


def check_constraints(values: Mapping[str, Any], now: datetime.datetime,
        classes: Collection[str], changed: Collection[
        str] | None = None) -> None:
    """Refuse times and a class that conflict, or are out of date.

    :param values: of a backlog_model.Request, as it would be, by name
    :param classes: the classes that may be requested
    :param changed: the names of new values, None for all: an unchanged value
        may be out of date
    :raises InvalidRequest:
    """
    name = values.get("class_name")
    new = set(values if changed is None else changed)
    if name and "class_name" in new and name not in classes:
        known = ", ".join(sorted(classes))
        raise InvalidRequest("class",
            f"{name!r} is not allowed; allowed are {known}"
            if known
            else f"{name!r} is not allowed, nor is any other class")
    not_before, not_after = values.get("not_before"), values.get("not_after")
    for field in ("not_after", "back_until"):
        at = values.get(field)
        if at is not None and field in new and at <= now:
            raise InvalidRequest(field, f"{at.isoformat()}Z is in the past")
    if not_before and not_after and not_after <= not_before:
        raise InvalidRequest(
            "not_after", f"{not_after.isoformat()}Z is not after not_before, "
            f"{not_before.isoformat()}Z")
    longest_s = values.get("longest_wait_s")
    if (longest_s is not None and not_before
            and new & {"longest_wait_s", "not_before"}
            and (not_before - values.get("created_at", now)).total_seconds()
            >= longest_s):
        raise InvalidRequest(
            "longest_wait_s",
            f"{longest_s} s after its creation the request would expire "
            f"before not_before, {not_before.isoformat()}Z")
    if not values.get("comes_back"):
        for field in ("back_until", "most_returns"):
            if values.get(field) is not None:
                raise InvalidRequest(field, "it requires comes_back = true")


def class_of(
    name: str, alternatives: Iterable[backlog_model.Alternative],
    known: Collection[str], ) -> str:
    """Return the class of the servers of a request, '' for none.

    The class that it names, else the class of its flavors, as core.classes.
    class_of_server has it for each server.

    :param known: the existing classes
    :raises InvalidRequest: its flavors are of another class, of several
        classes, or not preemptible
    """
    found = set()
    for item in alternatives:
        own = class_of_server.class_of(item.class_name, "", known)
        if name and not item.preemptible:
            raise InvalidRequest(
                "class",
                f"class {name!r} requires preemptible flavors, which "
                f"{item.name} is not")
        if name and own not in ("", name):
            raise InvalidRequest("class",
                f"flavor {item.name} has the class {own!r}")
        found.add(class_of_server.class_of(item.class_name, name, known))
    if len(found) > 1:
        classes = ", ".join(each or "none" for each in sorted(found))
        raise InvalidRequest("flavors",
            f"they have different classes: {classes}")
    return found.pop() if found else ""


def check_limits(limits: Mapping[str, tuple[int, int]]) -> str:
    """Return why a project may not add a request, '' if it may.

    :param limits: {name: (used, allowed)}; allowed -1 is no limit
    """
    for name, (used, allowed) in limits.items():
        if 0 <= allowed <= used:
            return (
                f"The limit {name} would be exceeded: {allowed} allowed, "
                f"{used} used, 1 requested.")
    return ""


def starts_from_volume(server: Mapping[str, Any]) -> bool:
    """Tell whether the root disks of such servers are volumes.

    As Nova's compute API does: without an image, or if the first boot device
    is a volume.
    """
    if not server.get("imageRef"):
        return True
    devices = server.get("block_device_mapping_v2")
    return any(
        isinstance(device, Mapping) and str(device.get("boot_index")) == "0"
        and device.get("destination_type") == "volume"
        for device in (devices if isinstance(devices, list) else ()))


# (name, limit and usage in GET /limits, resource classes that count; none:
# each server counts 1).
_LIMITS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("servers", "maxTotalInstances", "totalInstancesUsed", ()),
    # Nova counts pinned cores like shared cores.
    ("vCPUs", "maxTotalCores", "totalCoresUsed", ("VCPU", "PCPU")),
    ("MiB of RAM", "maxTotalRAMSize", "totalRAMUsed", ("MEMORY_MB",)),
)


def why_over_quota(
    request: backlog_model.Request, limits: Mapping[str, int]) -> str:
    """Return why the servers that start together exceed the quota.

    :param limits: the absolute ones of GET /limits
    :returns: '' where they are not, in one of its flavors
    """
    reasons = [
        _why_over(item, backlog_model.least(request), limits)
        for item in request.alternatives]
    return next(iter(reasons), "") if all(reasons) else ""


def _why_over(
    wanted: backlog_model.Alternative, count: int, limits: Mapping[str, int]
) -> str:
    for name, most, used, classes in _LIMITS:
        limit = limits.get(most, -1)
        if limit < 0:  # unlimited
            continue
        left = limit - limits.get(used, 0)
        amount = sum(
            wanted.resources.get(name, 0) for name in classes
        ) if classes else 1
        if amount and count * amount > left:
            return (f"the quota of its project has {max(0, left)} {name} "
                    f"left, but it needs {count * amount}.")
    return ""
