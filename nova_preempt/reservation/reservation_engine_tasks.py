# SPDX-License-Identifier: Apache-2.0
"""Assembles the part of nova-preempt-engine that keeps reservations."""

import oslo_messaging as messaging
from oslo_utils import timeutils

from nova_preempt import exceptions
from nova_preempt import metrics
from nova_preempt import rpc
from nova_preempt.cloud import nova_contexts
from nova_preempt.conf import reservation as conf_reservation
from nova_preempt.db import reservable_hosts
from nova_preempt.db import reservation_moves
from nova_preempt.db import reservations as db
from nova_preempt.handover import allocation_claim
from nova_preempt.handover import preemption_notifications
from nova_preempt.reservation import drain_executor
from nova_preempt.reservation import host_inventory
from nova_preempt.reservation import host_occupancy
from nova_preempt.reservation import host_replacer
from nova_preempt.reservation import lease_event_loop
from nova_preempt.reservation import leftover_servers
from nova_preempt.reservation import reconciler
from nova_preempt.reservation import reservation_observer
from nova_preempt.reservation import reservation_purge
from nova_preempt.reservation import reservation_scheduler
from nova_preempt.reservation import server_migrator

# Of the payload; see nova_preempt.handover.preemption_notifications.VERSION.
VERSION = '1.0'

_TIME = '%Y-%m-%dT%H:%M:%SZ'


def make_inventory(conf, process, clients, servers, **power):
    """Return a HostInventory.

    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param clients: a nova_preempt.cloud.clients.Clients
    :param servers: a nova_preempt.cloud.preemptible_server_cache.ServerCache
    :param power: functions efficiency and asleep, see HostInventory
    """
    def settings():
        return {host: (item.reservable, item.extra) for host, item
                in reservable_hosts.get_hosts(process.db).items()}

    def may_end(uuid):
        server = servers.get(uuid)
        return server is None or not reservation_observer.stays_s(
            server, process.options, process.clock())

    return host_inventory.HostInventory(
        conf[conf_reservation.GROUP], clients.nova, clients.placement,
        settings, lambda: reservable_hosts.get_hidden(process.db),
        lambda left: host_occupancy.HostOccupancy(
            clients.get_cells, servers, left),
        may_end=may_end,
        claimants=lambda: allocation_claim.claimants(process.decisions),
        **power)


class ReservationEngineTasks:
    """Assembles the tasks of reservations.

    :param conf: nova.conf.CONF
    :param process: a nova_preempt.handover.service_context.ProcessContext
    :param clients: a nova_preempt.cloud.clients.Clients
    :param known: a nova_preempt.handover.service_context.CloudCaches
    :param ends: a nova_preempt.engine.standalone_evictions.Evictions
    :param hosts: an Inventory
    :param sight: see host_replacer.HostReplacer
    """

    def __init__(self, conf, process, clients, known, ends, hosts,
                 sight=lambda: ''):
        self._options = options = conf[conf_reservation.GROUP]

        def clock():
            return process.clock().replace(tzinfo=None)

        self.reservations = db.Reservations(process.db, clock)
        tell = ReservationNotifications(conf, conf.host)
        self.close = tell.close
        moves = server_migrator.ServerMigrator(
            clients.nova, hosts.occupancy,
            reservation_moves.ReservationMoves(process.db), clock)
        self.lease_events = lease_event_loop.LeaseEventLoop(
            process.db, self.reservations, tell, clock,
            lambda: options.enabled)
        repairs = host_replacer.HostReplacer(
            self.reservations, hosts, tell, options,
            reservation_scheduler.load_ranking(options.ranking), clock, sight)
        self.reconciler = reconciler.Reconciler(
            self.reservations, hosts, drain_executor.DrainExecutor(
                reservation_observer.ReservationObserver(
                    process, known, options, hosts, moves, repairs),
                self.reservations, self.lease_events, ends, clock,
                lambda: options.enabled),
            moves, repairs, leftover_servers.LeftoverServers(
                self.reservations, clients.nova, hosts, tell, clock),
            reservation_purge.RecordPurge(process.db, options, clock), clock)

    def to_start(self):
        """Return the open Reservations, none if [reservation] is disabled."""
        return (self.reservations.snapshot().reservations
                if self._options.enabled else ())

    def run_once(self):
        """Handle due events, and do the next step of each reservation."""
        self.lease_events.run()
        self.reconciler.run()


class HostInventoryEndpoint:
    """RPC endpoint of hosts, see rpc.EngineClient; served by every engine.


    :param inventory: a nova_preempt.reservation.host_inventory.HostInventory
    """

    target = messaging.Target(namespace=rpc.INVENTORY, version='1.0')

    def __init__(self, inventory):
        self._inventory = inventory

    def ping(self, context):
        """Answer, so that the caller knows that messages arrive."""

    @messaging.expected_exceptions(exceptions.PreemptError)
    def find_hosts(self, context, host_properties):
        return self._inventory.find_hosts(host_properties)

    def list_properties(self, context):
        return self._inventory.list_properties()

    def list_hosts(self, context):
        return self._inventory.list_hosts()


def why_unreachable(client, server):
    """Return why this engine cannot tell which hosts are down, '' if it can.

    Computes report over the message bus. An engine that does not reach itself
    there cannot tell a host that is down from a bus that is.

    :param client: an rpc.EngineClient
    :param server: the name of this engine on the bus
    """
    try:
        client.ping(nova_contexts.admin(), server)
    except exceptions.NoAnswer as exc:
        return ('this engine does not reach itself over the message bus '
                f'({exc})')
    return ''


class ReservationNotifications:
    """Sends notifications and sets metrics of reservations.

    :param conf, host: see
        nova_preempt.handover.preemption_notifications.Notifier
    """

    def __init__(self, conf, host):
        self._notifier = preemption_notifications.Notifier(conf, host)
        self.close = self._notifier.close

    def start(self, reservation, late_s):
        """Notify that a reservation has started.

        :param late_s: how many seconds after its start
        """
        metrics.RESERVATIONS_LATE.labels('start').observe(late_s)
        self._emit('start', reservation)

    def before_end(self, reservation):
        """Notify that the end of a reservation is near."""
        self._emit('before_end', reservation)

    def end(self, reservation, late_s=None):
        """Notify that a reservation has ended, or was cancelled meanwhile.

        :param late_s: how many seconds after its end, None if it was cancelled
        """
        if late_s is not None:
            metrics.RESERVATIONS_LATE.labels('end').observe(late_s)
        self._emit('end', reservation)

    def degraded(self, reservation):
        """Notify that hosts are missing; the reason says why."""
        self._emit('degraded', reservation)

    def error(self, reservation):
        """Notify that servers remain; the reason names them."""
        self._emit('error', reservation)

    def _emit(self, event, reservation):
        self._notifier.send(f'reservation.{event}', make_payload(reservation),
                            event == 'error')


def make_payload(reservation):
    """Return the payload of a notification, as documented by the samples.

    :param reservation: a
        nova_preempt.core.reservation.reservation_model.Reservation
    """
    return {
        'version': VERSION, 'reservation_id': reservation.uuid,
        'name': reservation.name, 'project_id': reservation.project_id,
        'user_id': reservation.user_id, 'status': reservation.status,
        'reason': reservation.reason, 'quantity': reservation.quantity,
        'start': f'{reservation.start_at:{_TIME}}',
        'end': f'{reservation.end_at:{_TIME}}',
        'end_action': reservation.end_action,
        'hosts': [{'name': host.host, 'status': host.status,
                   'reason': host.reason} for host in reservation.hosts],
        'generated_at': f'{timeutils.utcnow():{_TIME}}'}
