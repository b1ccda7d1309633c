# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-engine: runs the periodic and background work.

Reads the same nova.conf as the scheduler. Several may run; the leader acts.
"""

# Before all other imports.
from nova_preempt.cmd import native_threads  # noqa: F401 isort: skip

import functools
import signal
import sys
import threading
import time

from nova import context as nova_context
from nova import objects
from nova import rpc as nova_rpc
import nova.conf
from nova.scheduler.client import report
from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt import garbage_collection
from nova_preempt import metrics
from nova_preempt import rpc
from nova_preempt.backlog import backlog_engine_tasks
from nova_preempt.cloud import nova_conf
from nova_preempt.cmd import startup_option_rules
import nova_preempt.conf
from nova_preempt.conf import engine_tasks
from nova_preempt.conf import option_checks
from nova_preempt.engine import service
from nova_preempt.engine import standalone_evictions
from nova_preempt.handover import service_context
from nova_preempt.power import power_engine_tasks
from nova_preempt.reservation import reservation_engine_tasks

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

# Timeout of an RPC call from the engine to itself, in seconds.
_PING_S = 5


def get_cells():
    """Return {uuid: CellMapping} of all cells but cell0.

    Includes disabled cells, as in the scheduler: their servers go on running.
    """
    context = nova_context.get_admin_context()
    return {cell.uuid: cell
            for cell in objects.CellMappingList.get_all(context)
            if not cell.is_cell0()}


def make_engine(conf, cells=get_cells, clock=service_context.utcnow,
                driver=None, sight=lambda: '', trusts=None,
                monotonic=time.monotonic, **backlog):
    """Return a nova_preempt.engine.service.Engine.

    :param driver: power driver; by default the drivers of [energy]
    :param sight: returns why the engine cannot tell whether hosts are up
    :param trusts: by default keystone_trusts.Trusts
    :param monotonic: returns seconds of a monotonic clock
    :param backlog: see
        nova_preempt.backlog.backlog_engine_tasks.BacklogEngineTasks
    """
    found = service_context.ServiceContext(conf, conf.host,
                                  report.report_client_singleton, cells, clock)
    process, clients = found.process, found.clients
    process.start()
    options = conf[engine_tasks.GROUP]
    leadership = service.Leadership(process.db, process.owner)
    power = power_engine_tasks.PowerEngineTasks(conf, process, clients, driver,
                                leadership.holds, monotonic)
    qos = found.qos
    inventory = reservation_engine_tasks.make_inventory(
        conf, process, clients, found.known.servers,
        efficiency=power.efficiencies, asleep=power.asleep)
    return service.Engine(
        found, options, inventory, leadership,
        lambda ends: reservation_engine_tasks.ReservationEngineTasks(
            conf, process, clients, found.known, ends, inventory, sight),
        power, backlog_engine_tasks.BacklogEngineTasks(
            conf, process, found.known, inventory, trusts,
            classes=qos, nova=clients.nova, **backlog),
        works=(qos.works(process.db, cells, found.known.promised) if qos
               else ()), returning=qos and qos.returning(found))


def make_server(conf, engine):
    """Return the RPC server for calls of the API to the engine."""
    return messaging.get_rpc_server(
        rpc.get_transport(conf),
        messaging.Target(topic=rpc.EngineClient.target.topic,
                         server=conf.host),
        [standalone_evictions.EvictionEndpoint(engine.parts.known.servers,
                                               engine.evictions),
         reservation_engine_tasks.HostInventoryEndpoint(engine.inventory),
         *engine.power.endpoints, *engine.backlog.endpoints],
        executor='threading',
        serializer=nova_rpc.RequestContextSerializer(None))


def reload(conf, good):
    """Reload the mutable options.

    In a thread: the code that the signal has interrupted may hold a lock that
    is needed here.

    :param good: a nova_preempt.conf.option_checks.LastValidValues
    """
    threading.Thread(target=_reload, args=(conf, good), name='reload').start()


def _reload(conf, good):
    try:
        changed = conf.mutate_config_files()
    except cfg.Error:
        LOG.exception('The configuration cannot be read; the engine keeps '
                      'the current one.')
        return
    for (group, name), (old, new) in changed.items():
        if (group, name) in good.kept:
            continue
        LOG.info('[%(group)s]%(name)s is now %(new)r, no longer %(old)r.',
                 {'group': group, 'name': name, 'new': new, 'old': old})


def main():
    nova_preempt.conf.register_opts(CONF)
    try:
        nova_conf.read(CONF, sys.argv, init_rpc=False)
        option_checks.check(CONF, startup_option_rules.ENGINE)
        nova_rpc.init(CONF)
        good = option_checks.LastValidValues(CONF)
        logging.setup(CONF, 'nova')
        objects.register_all()
        engine = make_engine(CONF, sight=functools.partial(
            reservation_engine_tasks.why_unreachable,
            rpc.EngineClient(rpc.get_transport(CONF), _PING_S), CONF.host))
    except exceptions.InvalidConfiguration as exc:
        print(f'nova-preempt-engine: {exc}', file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_args: engine.stop())
    signal.signal(signal.SIGHUP, lambda *_args: reload(CONF, good))
    server = make_server(CONF, engine)
    server.start()
    metrics.serve(CONF.preemption.metrics_port,
                  CONF.preemption.metrics_address, engine.health.report)
    garbage_collection.settle()
    LOG.info('nova-preempt-engine %s has started.', CONF.host)
    engine.run()
    server.stop()
    engine.parts.process.close()
    return 0


if __name__ == '__main__':
    sys.exit(main())
