# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers of a project, their notices and recommendations."""

import dataclasses
import datetime
import json

from nova_preempt.cloud import extra_specs as specs
from nova_preempt_dashboard import periods


@dataclasses.dataclass(frozen=True)
class Notice:
    """The notice of a server, as its metadata has it."""

    action: str
    reason: str
    deadline: datetime.datetime


def is_preemptible_flavor(flavor, marks=()):
    """Return whether servers of a Flavor of the SDK are preemptible.

    :param marks: [preemption]marks of nova.conf
    """
    return specs.flavor_is_preemptible(specs.translated(
        flavor.extra_specs or {}, marks))


def is_preemptible(server, marks=()):
    """Return whether a server of the SDK is preemptible.

    Its hints are known from the microversion 2.100 of Nova on.
    """
    return (specs.hint_is_preemptible(server.scheduler_hints)
            or specs.flavor_is_preemptible(specs.translated(
                (server.flavor or {}).get('extra_specs') or {}, marks)))


def of(server):
    """Return the Notice of a server, None if it has none."""
    return _read(server, 'preemption', lambda found: Notice(
        str(found['action']), str(found['reason']),
        periods.parse(str(found['deadline']))))


def recommendation(server, now):
    """Return (reason, until) of a recommendation to leave, None without one.

    :param now: an aware datetime
    """
    found = _read(server, 'preemption_recommendation', lambda found: (
        str(found['reason']), periods.parse(str(found['until']))))
    return found if found and found[1] and now < found[1] else None


def _read(server, key, make):
    """Return what make() makes of JSON in the metadata, None if it fails."""
    try:
        return make(json.loads((server.metadata or {}).get(key) or 'null'))
    except (KeyError, TypeError, ValueError):
        # Users can write metadata, too.
        return None
