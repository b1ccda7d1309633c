# SPDX-License-Identifier: Apache-2.0
"""Readings of Kwapi's REST API."""

from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import readings
from nova_preempt.power import rest


class Kwapi:
    """All probes in one request, as Kwapi's collector has them last."""

    NAME = 'kwapi'

    def __init__(self, conf, options):
        self._hosts = power_hosts.HostsFile(options.hosts_file)
        self._client = rest.make_adapter(conf, options.kwapi_url)

    def read(self, hosts):
        """See nova_preempt.power.readings.Source."""
        with rest.answers_of('Kwapi'):
            probes = rest.call(self._client, 'GET', '/v1/probes/')['probes']
            return {
                host: readings.Reading(
                    host, probe.get('w'),
                    readings.from_epoch(probe.get('timestamp')))
                for host in hosts
                if (probe := probes.get(
                    self._hosts.source_name(host, self.NAME)))}
