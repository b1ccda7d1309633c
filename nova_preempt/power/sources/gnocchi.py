# SPDX-License-Identifier: Apache-2.0
"""The power source "gnocchi": a metric in Gnocchi."""

import datetime

from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_readings
from nova_preempt.power import rest_client

#: Defaults of Ceilometer's IPMI metric: the metric with a host's watts, the
#: type of its resources, and their attribute that names the host.
METRIC = 'hardware.ipmi.node.power'
RESOURCE_TYPE = 'ipmi'
HOST_ATTRIBUTE = 'original_resource_id'


class Gnocchi:
    """Power source: the last mean of a metric of all hosts, in one call."""

    NAME = 'gnocchi'

    def __init__(self, conf, options, clock=power_readings.utcnow):
        self._hosts = power_hosts.HostsFile(options.hosts_file)
        self._clock = clock
        self._client = rest_client.make_adapter(
            conf, options.gnocchi_url, 'metric')

    def read(self, hosts):
        """Read all hosts; see nova_preempt.power.power_readings.Source."""
        now = self._clock()
        names = {self._hosts.source_name(host, self.NAME): host
                 for host in hosts}
        found = {}
        with rest_client.answers_of('Gnocchi'):
            for group in self._query(sorted(names), now):
                name = group['group'][HOST_ATTRIBUTE]
                reading = _last(names.get(name), group['measures'], now)
                if reading is not None:
                    found[reading.host] = reading
        return found

    def _query(self, names, now):
        # NOTE: a period that ends within the age may have begun before.
        start = now - datetime.timedelta(
            seconds=2 * efficiency_ranking.MAX_AGE_S)
        return rest_client.call(
            self._client, 'POST', '/v1/aggregates',
            params={'groupby': HOST_ATTRIBUTE,
                    'start': f'{start:%Y-%m-%dT%H:%M:%S}'},
            json={'operations': ['metric', METRIC, 'mean'],
                  'resource_type': RESOURCE_TYPE,
                  'search': {'in': {HOST_ATTRIBUTE: names}}})


def _last(host, measures, now):
    """Return the Reading of the latest period; of equal ones the shortest.

    A mean is as old as the end of its period, which may be in the future.
    """
    points = [
        (datetime.datetime.fromisoformat(start), -granularity_s, watts)
        for metrics in measures['measures'].values()
        for aggregates in metrics.values() for series in aggregates.values()
        for start, granularity_s, watts in series]
    if not points or host is None:
        return None
    start, minus_s, watts = max(points, key=lambda point: point[:2])
    end = start - datetime.timedelta(seconds=minus_s)
    return power_readings.Reading(host, watts, min(end, now))
