# SPDX-License-Identifier: Apache-2.0
"""Methods of "conn.preemption".

They raise openstack.exceptions: BadRequestException for an invalid request,
with the name of the field, ForbiddenException, NotFoundException,
ConflictException for a conflict with the current state, HttpException for
other errors, and NotSupported if the service is too old. Times are
ISO 8601, UTC if they have no offset. A parameter that takes a name or id takes
the resource, too.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from openstack import resource

from nova_preempt.sdk.v1 import _backlog
from nova_preempt.sdk.v1 import _energy
from nova_preempt.sdk.v1 import backlog as _requests
from nova_preempt.sdk.v1 import energy
from nova_preempt.sdk.v1 import preemption as _preemption
from nova_preempt.sdk.v1 import reservation as _reservation
from nova_preempt.sdk.v1 import webhook as _webhook

# Final statuses.
_PREEMPTIONS_OVER = {'done', 'rolled_back', 'aborted', 'refused'}
_RESERVATIONS_OVER = {'ended', 'cancelled', 'error'}


class Proxy(_backlog.BacklogMixin, _energy.EnergyMixin):
    """Version 1 of the Preemption API."""

    api_version = '1'

    _resource_registry = {
        'backlog_request': _requests.BacklogRequest,
        'energy_host': energy.EnergyHost,
        'host': _reservation.Host,
        'pause': _preemption.Pause,
        'preemption': _preemption.Preemption,
        'property': _reservation.Property,
        'reservation': _reservation.Reservation,
    }

    def preemptions(self, *, max_items: int | None = None, **query: Any
                    ) -> Iterator[_preemption.Preemption]:
        """Return a generator of preemptions, newest first.

        :param max_items: the most items in total; "limit" is the size of a
            page
        :param query: server_id, victim_id, flavor, status, since, until; for
            administrators host, project_id, all_projects=True
        :returns: a generator of Preemption
        :raises InvalidResourceQuery: query has another parameter
        """
        return self._all(_preemption.Preemption, max_items, query)

    def get_preemption(self, preemption: _preemption.Preemption | str
                       ) -> _preemption.Preemption:
        """Get a preemption with its decision record.

        :param preemption: id of the preemption
        :returns: one Preemption
        :raises NotFoundException: there is none of this id
        """
        return self._show(_preemption.Preemption, preemption)

    def wait_for_preemption(self, preemption: _preemption.Preemption | str,
                            status: str = 'done', *, interval: float = 2,
                            wait: float | None = 600
                            ) -> _preemption.Preemption:
        """Wait until a preemption has a status.

        :param preemption: id of the preemption
        :param status: the status to wait for
        :param interval: seconds between two polls
        :param wait: the most seconds to wait, None for no limit
        :returns: the Preemption
        :raises ResourceTimeout: it does not have the status in time
        :raises ResourceFailure: it has another final status
        """
        return self._wait(_preemption.Preemption, preemption, status,
                          _PREEMPTIONS_OVER, interval, wait)

    def simulate_preemption(self, server: resource.Resource | str,
                            reason: str | None = None
                            ) -> _preemption.Preemption:
        """Evict a preemptible server as a preemption would; not a dry run.

        :param server: id of the server
        :param reason: a text for the record of the preemption
        :returns: one Preemption, which has an id only
        """
        values = {'server_id': resource.Resource._get_id(server)}
        if reason is not None:
            values['reason'] = reason
        return self._get_resource(_preemption.Preemption, None).simulate(
            self, **values)

    def explain_preemption(self, flavor: str, **where: Any
                           ) -> _preemption.Explanation:
        """Explain which servers a new server would preempt.

        :param flavor: id or name of the flavor
        :param where: availability_zone; for administrators host
        :returns: one Explanation
        """
        return self._create(_preemption.Explanation, flavor=flavor, **where)

    def placement_chances(self, flavors: Iterable[str],
                          availability_zone: str | None = None
                          ) -> Iterator[_preemption.PlacementChance]:
        """Return a generator of the number of servers that fit now.

        :param flavors: ids or names of flavors
        :param availability_zone: name of a zone, None for all zones
        :returns: a generator of PlacementChance, one per flavor and zone
        """
        return self._all(_preemption.PlacementChance, None, {
            'flavor': list(flavors), 'availability_zone': availability_zone})

    def eviction_rates(self, flavors: Iterable[str] = (),
                       availability_zone: str | None = None
                       ) -> Iterator[_preemption.EvictionRate]:
        """Return a generator of rates of evictions.

        :param flavors: names of flavors; administrators may name none, for
            all
        :param availability_zone: name of a zone, None for all zones
        :returns: a generator of EvictionRate, one per flavor, zone and period;
            without those that would tell of servers of single projects
        """
        return self._all(_preemption.EvictionRate, None, {
            'flavor': list(flavors) or None,
            'availability_zone': availability_zone})

    def get_preemption_statistics(self, **query: Any
                                  ) -> _preemption.Statistics:
        """Get numbers of preemptions, in total and by flavor.

        :param query: since, until
        :returns: one Statistics
        """
        return self._single(_preemption.Statistics, **query)

    def get_status(self, **query: Any) -> _preemption.Status:
        """Get the leading engine, pauses, waiting requests and free capacity.

        :param query: flavor, a list of ids or names whose room is counted; by
            default those with most victims within 30 days
        :returns: one Status
        """
        return self._single(_preemption.Status, **query)

    def pauses(self) -> Iterator[_preemption.Pause]:
        """Return a generator of paused subsystems.

        :returns: a generator of Pause
        """
        return self._all(_preemption.Pause)

    def pause(self, what: str, reason: str) -> _preemption.Pause:
        """Pause a subsystem.

        :param what: preemption, reservations, power or backlog
        :param reason: a text for users and operators
        :returns: the new Pause
        """
        return self._change(_preemption.Pause, what, {'reason': reason})

    def resume(self, what: _preemption.Pause | str, ignore_missing: bool = True
               ) -> None:
        """Resume a paused subsystem.

        :param what: preemption, reservations, power or backlog
        :param ignore_missing: do not raise NotFoundException if the
            subsystem is not paused
        """
        self._delete(_preemption.Pause, what, ignore_missing)

    def reservations(self, *, max_items: int | None = None, **query: Any
                     ) -> Iterator[_reservation.Reservation]:
        """Return a generator of reservations, newest first.

        :param max_items: the most items in total
        :param query: status, name, since, until; for administrators host,
            project_id, all_projects=True
        :returns: a generator of Reservation
        :raises InvalidResourceQuery: query has another parameter
        """
        return self._all(_reservation.Reservation, max_items, query)

    def get_reservation(self, reservation: _reservation.Reservation | str
                        ) -> _reservation.Reservation:
        """Get a reservation.

        :param reservation: id of the reservation
        :returns: one Reservation
        :raises NotFoundException: there is none of this id
        """
        return self._show(_reservation.Reservation, reservation)

    def find_reservation(self, name_or_id: str, ignore_missing: bool = True
                         ) -> _reservation.Reservation | None:
        """Find a reservation of the project.

        :param name_or_id: name or id of the reservation
        :param ignore_missing: return None instead of raising NotFoundException
        :returns: one Reservation, or None
        :raises DuplicateResource: several reservations have the name
        """
        return self._named(_reservation.Reservation, name_or_id,
                           ignore_missing)

    def create_reservation(self, **values: Any) -> _reservation.Reservation:
        """Create a reservation of hosts.

        :param values: host_properties (a filter as a list), quantity,
            duration (seconds), start_time, end_time, name, end_action
            (shelve or delete), before_end_s
        :returns: the new Reservation
        :raises ConflictException: not enough hosts are free; the message has
            the time when they are
        """
        return self._create(_reservation.Reservation, **values)

    def preview_reservation(self, **values: Any) -> _reservation.Preview:
        """Preview a reservation without creating it.

        :param values: as for create_reservation
        :returns: one Preview
        """
        return self._get_resource(_reservation.Preview, None).ask(
            self, **values)

    def update_reservation(self, reservation: _reservation.Reservation | str,
                           **values: Any) -> _reservation.Reservation:
        """Update a reservation.

        :param reservation: id of the reservation
        :param values: name, end_action, before_end_s, end_at
        :returns: the updated Reservation
        """
        return self._change(_reservation.Reservation, reservation, values)

    def delete_reservation(self, reservation: _reservation.Reservation | str,
                           ignore_missing: bool = True) -> None:
        """Cancel a reservation; an active reservation ends immediately.

        :param reservation: id of the reservation
        :param ignore_missing: do not raise NotFoundException
        """
        self._delete(_reservation.Reservation, reservation, ignore_missing)

    def wait_for_reservation(self, reservation: _reservation.Reservation | str,
                             status: str = 'active', *, interval: float = 10,
                             wait: float | None = 600
                             ) -> _reservation.Reservation:
        """Wait until a reservation has a status; see wait_for_preemption.

        :returns: the Reservation
        """
        return self._wait(_reservation.Reservation, reservation, status,
                          _RESERVATIONS_OVER, interval, wait)

    def hosts(self, *, max_items: int | None = None, **query: Any
              ) -> Iterator[_reservation.Host]:
        """Return a generator of hosts, by name.

        :param max_items: the most items in total
        :param query: limit and marker, the name of a host; since and until
            for only those reservations that overlap this period
        :returns: a generator of Host
        """
        return self._all(_reservation.Host, max_items, query)

    def get_host(self, host: _reservation.Host | str) -> _reservation.Host:
        """Get a host with its reservations.

        :param host: name of the host
        :returns: one Host
        :raises NotFoundException: there is none of this name
        """
        return self._show(_reservation.Host, host)

    def update_host(self, host: _reservation.Host | str, **values: Any
                    ) -> _reservation.Host:
        """Update a host.

        :param host: name of the host
        :param values: reservable (None for the default of the service), and
            extra: a dict of properties, where None deletes a property
        :returns: the updated Host
        """
        return self._change(_reservation.Host, host, values)

    def properties(self) -> Iterator[_reservation.Property]:
        """Return a generator of host properties for filters.

        :returns: a generator of Property
        """
        return self._all(_reservation.Property)

    def update_property(self, name: _reservation.Property | str, *,
                        hidden: bool) -> _reservation.Property:
        """Update a host property.

        :param name: name of the property
        :param hidden: whether only administrators can read and request it
        :returns: the updated Property
        """
        return self._change(_reservation.Property, name, {'hidden': hidden})

    def get_reservation_limits(self,
                               project: resource.Resource | str | None = None
                               ) -> _reservation.ReservationLimits:
        """Get the reservation limits of a project.

        :param project: id of the project, None for the project of the token
        :returns: one ReservationLimits
        :raises InvalidRequest: project is None, and the token has no project
        """
        return self._show(_reservation.ReservationLimits,
                          project or self.get_project_id())

    def set_reservation_limits(self, project: resource.Resource | str,
                               **limits: int
                               ) -> _reservation.ReservationLimits:
        """Replace the own limits of a project; the others are the defaults.

        :param project: id of the project
        :param limits: max_reservations, max_hosts, max_duration_s,
            max_advance_s, max_created_per_day; -1 is no limit
        :returns: the updated ReservationLimits
        """
        return self._change(_reservation.ReservationLimits, project, limits)

    def delete_reservation_limits(self, project: resource.Resource | str,
                                  ignore_missing: bool = True) -> None:
        """Delete the own limits of a project; the defaults apply again.

        :param project: id of the project
        :param ignore_missing: do not raise NotFoundException
        """
        self._delete(_reservation.ReservationLimits,
                     resource.Resource._get_id(project), ignore_missing)

    def get_webhook(self, project: resource.Resource | str | None = None
                    ) -> _webhook.Webhook:
        """Get the webhook of a project, without its secret.

        :param project: id of the project, None for the project of the token
        :returns: one Webhook
        :raises NotFoundException: the project has none
        """
        return self._show(_webhook.Webhook, project or self.get_project_id())

    def set_webhook(self, url: str, secret: str | None = None,
                    project: resource.Resource | str | None = None
                    ) -> _webhook.Webhook:
        """Set the webhook of a project, and send a test event to it.

        :param secret: None keeps that of the webhook that it replaces, or
            makes one
        :param project: see get_webhook()
        :returns: the Webhook, with the secret if it was made
        """
        return self._change(_webhook.Webhook,
                            project or self.get_project_id() or '', {
                                'url': url,
                                **({'secret': secret} if secret else {})})

    def delete_webhook(self, project: resource.Resource | str | None = None,
                       ignore_missing: bool = True) -> None:
        """Delete the webhook of a project, and the events that wait for it.

        :param project: see get_webhook()
        :param ignore_missing: do not raise NotFoundException
        """
        self._delete(_webhook.Webhook, resource.Resource._get_id(
            project or self.get_project_id() or ''), ignore_missing)
