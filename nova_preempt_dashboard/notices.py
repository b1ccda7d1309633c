# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers of a project, and the notices that they have."""

import dataclasses
import datetime
import json

from nova_preempt_dashboard import periods

_SPECS = ('preemptible:enabled', 'blazar:preemptible')
_TRUE = ('1', 't', 'true', 'on', 'y', 'yes')


@dataclasses.dataclass(frozen=True)
class Notice:
    """The notice of a server, as its metadata has it."""

    action: str
    reason: str
    deadline: datetime.datetime


def _is_true(value):
    return str(value).strip().lower() in _TRUE


def is_preemptible_flavor(extra_specs):
    return any(_is_true((extra_specs or {}).get(name)) for name in _SPECS)


def is_preemptible(server):
    """Return whether a server of the SDK is preemptible.

    Its hints are known from the microversion 2.100 of Nova on.
    """
    hint = (server.scheduler_hints or {}).get('preemptible')
    if isinstance(hint, list):
        hint = hint[-1] if hint else None
    return _is_true(hint) or is_preemptible_flavor(
        (server.flavor or {}).get('extra_specs'))


def of(server):
    """Return the Notice of a server, None if it has none."""
    text = (server.metadata or {}).get('preemption')
    if not text:
        return None
    try:
        found = json.loads(text)
        return Notice(str(found['action']), str(found['reason']),
                      periods.parse(str(found['deadline'])))
    except (KeyError, TypeError, ValueError):
        # Users can write metadata, too.
        return None
