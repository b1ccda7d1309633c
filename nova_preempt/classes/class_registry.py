# SPDX-License-Identifier: Apache-2.0
"""Classes of service: the entry point by which the package finds them.

An installation may omit this package: nova_preempt.handover.eviction_policy
finds it by the entry point ``qos`` of the group ``nova_preempt.classes``, and
no module imports it.
"""

import math

from nova_preempt import metrics
from nova_preempt.classes import server_promises
from nova_preempt.classes import unshelve_choice
from nova_preempt.classes import uptime_recorder
from nova_preempt.conf import classes as conf_classes
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import request_checks
from nova_preempt.core.backlog import request_history
from nova_preempt.core.classes import class_table
from nova_preempt.db import backlog_history
from nova_preempt.db import server_uptimes

#: How often the engine reads servers of a class. Nova dates what happens to
#: them, so a late reading loses nothing.
LOOK_S = 10


class ServiceClasses:
    """The classes of service that the options define.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :ivar table: a core.classes.class_table.ClassTable
    :raises ValueError: an option is invalid; the message names it
    """

    def __init__(self, conf):
        options = conf[conf_classes.GROUP]
        try:
            self.table = class_table.parse(options.qos_class or (),
                                           options.pass_period_s)
        except ValueError as exc:
            raise ValueError(f'[{conf_classes.GROUP}]qos_class: {exc}'
                             ) from None

    def promised(self, database, clock):
        """Return the ServerPromises by which decisions rank servers.

        :param database: a nova_preempt.db.Database
        :param clock: returns now, timezone-aware
        """
        return server_promises.ServerPromises(database, self.table, clock)

    def returning(self, parts):
        """Return the UnshelveChooser for engine.victim_unshelving.

        :param parts: a nova_preempt.handover.service_context.ServiceContext
        """
        return unshelve_choice.UnshelveChooser(parts, self.table)

    def claims(self, database):
        """Return the RequestUptimeReader of waiting requests."""
        return RequestUptimeReader(database, self.table)

    def works(self, database, get_cells, promised):
        """Return tasks, [(name, function)]; see engine.periodic_tasks.

        :param database: a nova_preempt.db.Database
        :param get_cells: returns {uuid: CellMapping} to look for servers in
        :param promised: the result of promised(), which is refreshed elsewhere
        """
        times = uptime_recorder.UptimeRecorder(database, get_cells, self.table)

        def look():
            times.look()
            self._tell(promised.kept())
            return LOOK_S

        return [('clocks of classes', look)]

    def _tell(self, kept):
        """Set the metrics of how well promises are kept."""
        for qos in self.table.classes:
            of = kept[qos.name]
            for state, number in of.servers.items():
                metrics.CLASS_SERVERS.labels(qos.name, state).set(number)
            metrics.CLASS_TARGET.labels(qos.name).set(qos.availability)
            metrics.CLASS_BELOW.labels(qos.name).set(of.below)
            # NOTE: NaN without any time: 0 would be a broken promise.
            metrics.CLASS_AVAILABILITY.labels(qos.name).set(
                of.times.availability if of.times.total_us else math.nan)


class RequestUptimeReader:
    """Reads the clocks of waiting requests from their history.

    :param database: a nova_preempt.db.Database
    :param table: a core.classes.class_table.ClassTable
    """

    def __init__(self, database, table):
        self._db = database
        self.table = table

    def clocks(self, requests):
        """Return {uuid: core.classes.server_clocks.ServerClocks} of requests.

        Each change of a request is in the database, so a restart loses
        nothing. A request that was never started has waited since it was made.
        """
        known = backlog_history.of(self._db, [
            request.uuid for request in requests if request.boots])
        return {request.uuid: request_history.clocks_of(known.get(
            request.uuid) or request_history.History(
                (backlog_model.StateChange(request.created_at,
                                           backlog_model.WAITING),),
                not_before=request.not_before)) for request in requests}

    def overheads_us(self, requests):
        """Return {uuid: how long its server takes to get to a host}."""
        known = server_uptimes.overheads(self._db)
        return {request.uuid: known.get(_kind(request), self.table.overhead_us)
                for request in requests}


def _kind(request):
    """Return the kind of db.server_uptimes.ServerUptime of a first flavor."""
    return (request.alternatives[0].name,
            request_checks.starts_from_volume(request.body.get('server', {})))
