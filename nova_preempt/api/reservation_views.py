# SPDX-License-Identifier: Apache-2.0
"""JSON views of reservations and their hosts."""

import hashlib

from nova_preempt.api import reservation_schemas as schemas
from nova_preempt.api import views

_NAMES = {'id': 'uuid', 'duration': 'duration_s',
          'start_time': 'window_start', 'end_time': 'window_end'}


def reservation(item, everything=True):
    """Return a core Reservation as JSON.

    :param everything: whether the caller may see names of hosts, and servers
        of other projects
    """
    return views.render(
        item, schemas.RESERVATION, _NAMES, reason=_reason(item, everything),
        hosts=[_held(item.project_id, host, everything)
               for host in item.hosts])


def _held(project_id, host, everything):
    name = host_id(project_id, host.host)
    return views.render(
        host, schemas.HELD_HOST, name=host.host if everything else name,
        host_id=name, reason=_reason(host, everything))


def _reason(item, everything):
    # Without a public reason, the reason may name other projects' servers.
    return item.reason if everything else item.public_reason or ''


def host_id(project_id, name):
    """Return the hostId by which Nova names a host to a project."""
    return hashlib.sha224((project_id + name).encode()).hexdigest()


def preview(found, project_id, everything=True):
    """Return a reservation_scheduler.Preview, or None, as JSON."""
    return {
        'possible': found is not None,
        'start_at': found and views.time(found.start_at),
        'end_at': found and views.time(found.end_at),
        'hosts': [name if everything else host_id(project_id, name)
                  for name in (found.hosts if found else ())],
    }


def property_(item, hidden):
    """Return a property of the engine as JSON.

    :param hidden: the names of properties that users do not see
    """
    return {'name': item['name'], 'type': item['type'],
            'values': item['values'], 'hidden': item['name'] in hidden}


_FROM_ENGINE = ('name', 'service_host', 'state', 'status', 'vacant',
                'running_servers', 'flops_per_watt', 'properties')


def host(item, settings, default, reservations):
    """Return a host of the engine as JSON.

    :param settings: its db.reservation_calendar.HostSettings, None if it has
        none
    :param default: whether hosts without settings are reservable
    :param reservations: its db.reservations.Bookings
    """
    reservable = settings and settings.reservable
    return {
        **{name: item[name] for name in _FROM_ENGINE},
        'reservable': default if reservable is None else reservable,
        'extra': settings.extra if settings else {},
        'reservations': [
            views.render(its, schemas.BOOKING, {'id': 'reservation_uuid'})
            for its in reservations],
    }
