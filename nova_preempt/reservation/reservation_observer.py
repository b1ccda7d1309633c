# SPDX-License-Identifier: Apache-2.0
"""Reads the state of an open reservation for its controller."""

import math

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import reservation_controller
from nova_preempt.handover import eviction_policy
from nova_preempt.reservation import server_migrator as moving

LOG = logging.getLogger(__name__)

# Failures that concern one host or reservation, not all of them.
AWAY = (nova_api.NovaError, placement_api.PlacementError)


def stays_s(server, options, now):
    """Return for how many seconds a preemptible server cannot get notice.

    :param server: a core.model.PreemptibleServer
    :param options: [preemption] of the configuration
    :param now: timezone-aware
    """
    rules = eviction_policy.get_rules(options)
    return drain_rules.stays_s(
        kept=bool(eviction_policy.why_stays(server, options)),
        uptime_s=server.uptime_us(now) / 1_000_000,
        minimum_s=rules.promised_s(server.minimum_runtime_s))


class ReservationObserver:
    """Reads hosts and their servers.

    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param known: a nova_preempt.handover.service_context.CloudCaches
    :param options: [reservation] of the configuration
    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    :param migration: a nova_preempt.reservation.server_migrator.ServerMigrator
    :param healing: a nova_preempt.reservation.host_replacer.HostReplacer
    """

    def __init__(self, process, known, options, inventory, migration, healing):
        self.process = process
        self.known = known
        self.options = options
        self.inventory = inventory
        self.migration = migration
        self.healing = healing

    def lead_s(self, notice_s):
        """Return how long before a start such a notice is given."""
        return eviction_policy.lead_s(notice_s, self.process.options)

    def leads_s(self):
        """Return how long before a start draining may begin, two values."""
        return (self.options.evacuation_lead_s,
                self.lead_s(self.process.options.maximum_notice_s))


class ObservedReservation:
    """See core.reservation.observed_hosts.ReservationView.

    :param reader: a ReservationObserver
    :param hosts: {name: core.reservation.observed_hosts.Host}
    :param running: {id: Reservation} of reservations whose servers stay
    """

    def __init__(self, reader, reservation, hosts, running):
        self.reservation = reservation
        self.running = running
        self.down = reader.healing.down(hosts)
        self._reader = reader
        self._hosts = hosts
        # NOTE: read once, as a server may be deleted at any moment.
        self._records = {}
        self._occupants = {}

    @property
    def leads_s(self):
        return self._reader.leads_s()

    def host(self, name):
        return self._hosts.get(name)

    def servers(self, name):
        return [self._server(item) for item
                in self._reader.inventory.occupancy.on_node(name)]

    def _server(self, item):
        """Return a core drain_rules.Server of an ObservedServer."""
        reader, uuid = self._reader, item.uuid
        named = reader.inventory.occupancy.reservations_of(uuid)
        busy = item.task_state is not None
        record = self._record(item)
        if record is None:
            return drain_rules.Server(
                uuid, named, None,
                drain_rules.move_lead_s(reader.options.evacuation_lead_s),
                0.0 if moving.is_movable(item) else math.inf, busy,
                bool(reader.migration.why_not(uuid)),
                reader.migration.asked_us(item))
        options = reader.process.options
        notice_s = eviction_policy.notice_rule(options).length_s(
            record.notice_s)
        return drain_rules.Server(
            uuid, named, notice_s, reader.lead_s(notice_s),
            stays_s(record, options, reader.process.clock()),
            busy or record.task_state is not None)

    def _record(self, item):
        """Return the cached preemptible server, None for a normal one."""
        if item.uuid not in self._records:
            self._records[item.uuid] = (
                self._reader.known.servers.get(item.uuid))
        return self._records[item.uuid]

    def records(self, uuids):
        """Return the cached preemptible servers."""
        return [self._records[uuid] for uuid in uuids]

    def caps(self, servers):
        budgets = self._reader.known.budgets.read()
        return budgets.caps(self.records(servers)) if budgets else ()

    def evicting(self):
        return self._reader.process.decisions.get_ending()

    def is_free(self, name, servers):
        try:
            found = self._reader.inventory.occupants(self._hosts[name])
        except AWAY as exc:
            LOG.warning('The servers on host %(host)s of reservation '
                        '%(uuid)s cannot be read: %(exc)s',
                        {'host': name, 'uuid': self.reservation.uuid,
                         'exc': exc})
            return None
        self._occupants[name] = found - servers
        return not self._occupants[name]

    def candidates(self):
        return self._reader.healing.candidates(self.reservation, self._hosts)

    def former(self):
        return self._reader.healing.former(self.reservation, self._hosts)

    # -- reasons of a replacement, for operators ---------------------------

    def why(self, intent):
        """Return why a host is lost, for operators.

        :param intent: a core.reservation.reservation_controller.ReplaceHost
        """
        name = intent.host
        if intent.loss is reservation_controller.Loss.DOWN:
            return self.down[name]
        if intent.loss is reservation_controller.Loss.ASLEEP:
            late = self._hosts[name].asleep.why_late
            return f'host {name} is not on: {late or "it does not wake"}'
        return f'host {name} is not empty: {self._describe(intent)}'

    def _describe(self, intent):
        texts = {
            drain_rules.ServerKind.OTHERS: 'servers of another reservation',
            drain_rules.ServerKind.PREEMPTIBLE: 'preemptible servers',
            drain_rules.ServerKind.NORMAL: 'servers'}
        parts = [_list(text, [
            self._with_reason(item, item.uuid in intent.blocking)
            for item in intent.residents if item.kind is kind])
            for kind, text in texts.items()]
        return '; '.join(part for part in parts if part) or _list(
            'allocations of', sorted(self._occupants.get(intent.host, ())))

    def _with_reason(self, item, blocks):
        why_not = ''
        if item.kind is drain_rules.ServerKind.NORMAL:
            why_not = self._reader.migration.why_not(item.uuid) or (
                self._state(item.uuid) if blocks else '')
        elif item.kind is drain_rules.ServerKind.PREEMPTIBLE and blocks:
            why_not = (
                eviction_policy.why_stays(self._records[item.uuid],
                                          self._reader.process.options)
                or f'promised to run for {item.stays_s:.0f} s more')
        elif blocks:
            why_not = f'whose end is {item.stays_s:.0f} s away'
        return f'{item.uuid} ({why_not})' if why_not else item.uuid

    def _state(self, uuid):
        found = self._reader.inventory.occupancy.get(uuid)
        return f'it is {found.vm_state}' if found else 'it has left'


def _list(what, items):
    if not items:
        return ''
    more = f' and {len(items) - 5} more' if len(items) > 5 else ''
    return f'{what} {", ".join(items[:5])}{more}'
