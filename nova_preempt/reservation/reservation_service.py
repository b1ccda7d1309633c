# SPDX-License-Identifier: Apache-2.0
"""The life of reservations, put together for the engine."""


from nova_preempt.conf import reservation as conf_reservation
from nova_preempt.db import requested_moves
from nova_preempt.db import reservable_hosts
from nova_preempt.db import reservations as db
from nova_preempt.handover import allocation_claim
from nova_preempt.reservation import healing
from nova_preempt.reservation import host_inventory
from nova_preempt.reservation import host_occupancy
from nova_preempt.reservation import lease_event_loop
from nova_preempt.reservation import migration
from nova_preempt.reservation import reconciler
from nova_preempt.reservation import reservation_cleanup
from nova_preempt.reservation import reservation_executor
from nova_preempt.reservation import reservation_notifications
from nova_preempt.reservation import reservation_purge
from nova_preempt.reservation import reservation_reader
from nova_preempt.reservation import reservation_schedule


def make_inventory(conf, process, clients, servers, **power):
    """An Inventory.

    :param process: a nova_preempt.handover.service_context.Process
    :param clients: a nova_preempt.cloud.clients.Clients
    :param servers: a nova_preempt.cloud.server_cache.ServerCache
    :param power: what it is told of power: efficiency and asleep
    """
    def settings():
        return {host: (item.reservable, item.extra) for host, item
                in reservable_hosts.get_hosts(process.db).items()}

    def may_end(uuid):
        server = servers.get(uuid)
        return server is None or not reservation_reader.stays_s(
            server, process.options, process.clock())

    return host_inventory.Inventory(
        conf[conf_reservation.GROUP], clients.nova, clients.placement,
        settings, lambda: reservable_hosts.get_hidden(process.db),
        lambda left: host_occupancy.Occupancy(
            clients.get_cells, servers, left),
        may_end=may_end,
        claimants=lambda: allocation_claim.claimants(process.decisions),
        **power)


class Lifecycle:
    """Moves reservations on, each at its time.

    :param conf: nova.conf.CONF
    :param process: a nova_preempt.handover.service_context.Process
    :param clients: a nova_preempt.cloud.clients.Clients
    :param known: a nova_preempt.handover.service_context.Knowledge
    :param ends: a nova_preempt.engine.evictions.Evictions
    :param hosts: an Inventory
    :param sight: see healing.Healing
    """

    def __init__(self, conf, process, clients, known, ends, hosts,
                 sight=lambda: ''):
        options = conf[conf_reservation.GROUP]

        def clock():
            return process.clock().replace(tzinfo=None)

        self.reservations = db.Reservations(process.db, clock)
        tell = reservation_notifications.ReservationNotifications(conf,
                                                                  conf.host)
        self.close = tell.close
        moves = migration.Migration(clients.nova, hosts.occupancy,
                                    requested_moves.Moves(process.db), clock)
        self.lease_events = lease_event_loop.LeaseEvents(
            process.db, self.reservations, tell, clock,
            lambda: options.enabled)
        repairs = healing.Healing(
            self.reservations, hosts, tell, options,
            reservation_schedule.load_ranking(options.ranking), clock, sight)
        self.reconciler = reconciler.Reconciler(
            self.reservations, hosts, reservation_executor.Keeper(
                reservation_reader.Reader(process, known, options, hosts,
                                          moves, repairs),
                self.reservations, self.lease_events, ends, clock,
                lambda: options.enabled),
            moves, repairs, reservation_cleanup.Cleanup(
                self.reservations, clients.nova, hosts, tell, clock),
            reservation_purge.Retention(process.db, options, clock), clock)

    def run_once(self):
        """Do what is due, and the next step of what takes time."""
        self.lease_events.run()
        self.reconciler.run()
