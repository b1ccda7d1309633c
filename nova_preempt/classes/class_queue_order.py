# SPDX-License-Identifier: Apache-2.0
"""The order "qos": ranks waiting requests by what their classes promise."""

from nova_preempt.core.classes import class_order
from nova_preempt.core.times import microseconds


class ClassQueueOrder:
    """Ranks waiting requests; see core.classes.class_order.

    :param options: a core.backlog.queue_order.Options with
        class_registry.RequestUptimeReader
    :raises ValueError: there are no classes
    """

    def __init__(self, options):
        if options.claims is None:
            raise ValueError('[backlog]order is qos, but [classes]enabled is '
                             'false')
        self._claims = options.claims

    def rank(self, requests, now, shares):
        """Return the requests, the next one first; see queue_order.Order."""
        of = {request.uuid: request for request in requests}
        clocks = self._claims.clocks(of.values())
        overheads_us = self._claims.overheads_us(of.values())
        now_us = microseconds(now)
        return [of[uuid] for uuid in class_order.ordered(
            self._claims.table.classes,
            (self._claim(request, clocks[uuid], overheads_us[uuid], now_us)
             for uuid, request in of.items()))]

    def _claim(self, request, clocks, overhead_us, now_us):
        times = clocks.at(now_us)
        return class_order.WaitingRequest(
            request.uuid, self._rank(request), times.running_us,
            times.total_us, overhead_us, clocks.admitted_us, request.serial)

    def _rank(self, request):
        classes = self._claims.table.classes
        found = classes.find(request.class_name)
        if found is not None:
            return classes.rank(found)
        return (class_order.NO_CLASS if request.alternatives[0].preemptible
                else class_order.NORMAL)
