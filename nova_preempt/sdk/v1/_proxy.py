# SPDX-License-Identifier: Apache-2.0
"""Methods of "conn.preemption".

They raise openstack.exceptions: BadRequestException for an invalid request,
with the name of the field, ForbiddenException, NotFoundException,
ConflictException for a conflict with the current state, HttpException for
other errors, and NotSupported if the service is too old. Times are
ISO 8601, UTC if they have no offset.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from openstack import resource

from nova_preempt.sdk.v1 import _backlog
from nova_preempt.sdk.v1 import backlog as _requests
from nova_preempt.sdk.v1 import energy as _energy
from nova_preempt.sdk.v1 import preemption as _preemption
from nova_preempt.sdk.v1 import reservation as _reservation

# Final statuses.
_PREEMPTIONS_OVER = {'done', 'rolled_back', 'aborted', 'refused'}
_RESERVATIONS_OVER = {'ended', 'cancelled', 'error'}


class Proxy(_backlog.BacklogMixin):
    """Version 1 of the Preemption API."""

    api_version = '1'

    _resource_registry = {
        'backlog_request': _requests.BacklogRequest,
        'energy_host': _energy.EnergyHost,
        'host': _reservation.Host,
        'pause': _preemption.Pause,
        'preemption': _preemption.Preemption,
        'property': _reservation.Property,
        'reservation': _reservation.Reservation,
    }

    def preemptions(self, *, max_items: int | None = None, **query: Any
                    ) -> Iterator[_preemption.Preemption]:
        """Iterate over Preemptions, newest first.

        :param max_items: the most items in total; "limit" is the size of a
            page
        :param query: server_id, victim_id, flavor, status, since, until; for
            administrators host, project_id, all_projects=True
        :raises InvalidResourceQuery: another parameter is given
        """
        return self._all(_preemption.Preemption, max_items, query)

    def get_preemption(self, preemption: _preemption.Preemption | str
                       ) -> _preemption.Preemption:
        """A Preemption with its record.

        :param preemption: id, or Preemption
        """
        return self._show(_preemption.Preemption, preemption)

    def wait_for_preemption(self, preemption: _preemption.Preemption | str,
                            status: str = 'done', *, interval: float = 2,
                            wait: float | None = 600
                            ) -> _preemption.Preemption:
        """The Preemption when it has this status.

        :param interval: seconds between two looks
        :param wait: seconds until there is a ResourceTimeout; None for ever
        :raises ResourceFailure: it will not get there
        """
        return self._wait(_preemption.Preemption, preemption, status,
                          _PREEMPTIONS_OVER, interval, wait)

    def simulate_preemption(self, server: resource.Resource | str,
                            reason: str | None = None
                            ) -> _preemption.Preemption:
        """Evict a preemptible server as a preemption would.

        This is no dry run. The Preemption that is returned has an id only.

        :param server: id, or openstack.compute.v2.server.Server
        """
        values = {'server_id': resource.Resource._get_id(server)}
        if reason is not None:
            values['reason'] = reason
        return self._get_resource(_preemption.Preemption, None).simulate(
            self, **values)

    def explain_preemption(self, flavor: str, **where: Any
                           ) -> _preemption.Explanation:
        """Return an Explanation of whom a new server would preempt.

        :param flavor: id or name
        :param where: availability_zone; for administrators host
        """
        return self._create(_preemption.Explanation, flavor=flavor, **where)

    def placement_chances(self, flavors: Iterable[str],
                          availability_zone: str | None = None
                          ) -> Iterator[_preemption.PlacementChance]:
        """Iterate over PlacementChances, one a flavor and zone.

        :param flavors: ids or names
        """
        return self._all(_preemption.PlacementChance, None, {
            'flavor': list(flavors), 'availability_zone': availability_zone})

    def get_preemption_statistics(self, **query: Any
                                  ) -> _preemption.Statistics:
        """Statistics of preemptions.

        :param query: since, until
        """
        return self._single(_preemption.Statistics, **query)

    def pauses(self) -> Iterator[_preemption.Pause]:
        """Iterate over Pauses: what is stopped for now."""
        return self._all(_preemption.Pause)

    def pause(self, what: str, reason: str) -> _preemption.Pause:
        """Pause a subsystem; return the Pause.

        :param what: preemption, reservations, power or backlog
        :param reason: a text for users and operators
        """
        return self._change(_preemption.Pause, what, {'reason': reason})

    def resume(self, what: _preemption.Pause | str, ignore_missing: bool = True
               ) -> None:
        """Resume a subsystem.

        :param what: as above, or a Pause
        """
        self._delete(_preemption.Pause, what, ignore_missing)

    def reservations(self, *, max_items: int | None = None, **query: Any
                     ) -> Iterator[_reservation.Reservation]:
        """Iterate over Reservations, newest first.

        :param max_items: as of preemptions
        :param query: status, name, since, until; for administrators host,
            project_id, all_projects=True
        :raises InvalidResourceQuery: another parameter is given
        """
        return self._all(_reservation.Reservation, max_items, query)

    def get_reservation(self, reservation: _reservation.Reservation | str
                        ) -> _reservation.Reservation:
        """A Reservation.

        :param reservation: id, or Reservation
        """
        return self._show(_reservation.Reservation, reservation)

    def find_reservation(self, name_or_id: str, ignore_missing: bool = True
                         ) -> _reservation.Reservation | None:
        """A Reservation of the project; None if there is none.

        :param ignore_missing: return None instead of raising NotFoundException
        :raises DuplicateResource: there are several of the name
        """
        return self._named(_reservation.Reservation, name_or_id,
                           ignore_missing)

    def create_reservation(self, **values: Any) -> _reservation.Reservation:
        """Reserve hosts; the Reservation.

        :param values: host_properties (a filter as a list), quantity,
            duration (seconds), start_time, end_time, name, end_action
            (shelve or delete), before_end_s
        :raises ConflictException: so many are not free; it says when they
            are
        """
        return self._create(_reservation.Reservation, **values)

    def preview_reservation(self, **values: Any) -> _reservation.Preview:
        """A Preview of that; nothing is reserved."""
        return self._get_resource(_reservation.Preview, None).ask(
            self, **values)

    def update_reservation(self, reservation: _reservation.Reservation | str,
                           **values: Any) -> _reservation.Reservation:
        """The changed Reservation.

        :param values: name, end_action, before_end_s, end_at
        """
        return self._change(_reservation.Reservation, reservation, values)

    def delete_reservation(self, reservation: _reservation.Reservation | str,
                           ignore_missing: bool = True) -> None:
        """Cancel a reservation; an active reservation ends now."""
        self._delete(_reservation.Reservation, reservation, ignore_missing)

    def wait_for_reservation(self, reservation: _reservation.Reservation | str,
                             status: str = 'active', *, interval: float = 10,
                             wait: float | None = 600
                             ) -> _reservation.Reservation:
        """The Reservation when it has this status; as wait_for_preemption."""
        return self._wait(_reservation.Reservation, reservation, status,
                          _RESERVATIONS_OVER, interval, wait)

    def hosts(self, *, max_items: int | None = None, **query: Any
              ) -> Iterator[_reservation.Host]:
        """Iterate over Hosts, by name.

        :param query: limit and marker, a name
        """
        return self._all(_reservation.Host, max_items, query)

    def get_host(self, host: _reservation.Host | str) -> _reservation.Host:
        """A Host.

        :param host: name, or Host
        """
        return self._show(_reservation.Host, host)

    def update_host(self, host: _reservation.Host | str, **values: Any
                    ) -> _reservation.Host:
        """The changed Host.

        :param values: reservable (None: as is configured), extra: a dict of
            properties, None for those that go
        """
        return self._change(_reservation.Host, host, values)

    def properties(self) -> Iterator[_reservation.Property]:
        """Iterate over Properties that can be asked for."""
        return self._all(_reservation.Property)

    def update_property(self, name: _reservation.Property | str, *,
                        hidden: bool) -> _reservation.Property:
        """The changed Property.

        :param hidden: whether only administrators see it
        """
        return self._change(_reservation.Property, name, {'hidden': hidden})

    def get_reservation_limits(self,
                               project: resource.Resource | str | None = None
                               ) -> _reservation.ReservationLimits:
        """ReservationLimits of a project.

        :param project: id, or openstack.identity.v3.project.Project; that of
            the token if it is None
        :raises InvalidRequest: that is not known
        """
        return self._show(_reservation.ReservationLimits,
                          project or self.get_project_id())

    def set_reservation_limits(self, project: resource.Resource | str,
                               **limits: int
                               ) -> _reservation.ReservationLimits:
        """Give a project these limits of its own, and no others.

        :param limits: max_reservations, max_hosts, max_duration_s,
            max_advance_s, max_created_per_day; -1 is no limit
        """
        return self._change(_reservation.ReservationLimits, project, limits)

    def delete_reservation_limits(self, project: resource.Resource | str,
                                  ignore_missing: bool = True) -> None:
        """Delete the own limits of a project."""
        self._delete(_reservation.ReservationLimits,
                     resource.Resource._get_id(project), ignore_missing)

    def get_energy(self, **query: Any) -> _energy.Energy:
        """Energy: what is drawn, and was saved.

        :param query: since; a month ago by default
        """
        return self._single(_energy.Energy, **query)

    def get_energy_report(self, **query: Any) -> _energy.EnergyReport:
        """An EnergyReport.

        :param query: since, until; the last week by default
        """
        return self._single(_energy.EnergyReport, **query)

    def energy_hosts(self) -> Iterator[_energy.EnergyHost]:
        """Iterate over EnergyHosts, by name."""
        return self._all(_energy.EnergyHost)

    def get_energy_host(self, host: _energy.EnergyHost | str
                        ) -> _energy.EnergyHost:
        """An EnergyHost.

        :param host: name, or EnergyHost
        """
        return self._show(_energy.EnergyHost, host)

    def retry_energy_host(self, host: _energy.EnergyHost | str) -> None:
        """Retry the boot of a failed host."""
        self._get_resource(_energy.EnergyHost, host).retry(self)

    def wait_for_energy_host(self, host: _energy.EnergyHost | str,
                             state: str = 'on', *, interval: float = 10,
                             wait: float | None = 600) -> _energy.EnergyHost:
        """The EnergyHost once it has this state; as wait_for_preemption."""
        return self._wait(_energy.EnergyHost, host, state, {'failed'},
                          interval, wait, 'state')

    def set_energy_figures(self, host: _energy.EnergyHost | str, **figures: Any
                           ) -> _energy.EnergyFigures:
        """Set speed and power of a host; return the EnergyFigures.

        :param host: name, or EnergyHost
        :param figures: flops, watts, idle_watts, source
        """
        return self._change(_energy.EnergyFigures, host, figures)

    def delete_energy_figures(self, host: _energy.EnergyHost | str,
                              ignore_missing: bool = True) -> None:
        """Delete the measured figures of a host."""
        self._delete(_energy.EnergyFigures, resource.Resource._get_id(host),
                     ignore_missing)
