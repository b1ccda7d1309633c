# SPDX-License-Identifier: Apache-2.0
"""The power source "kwapi": Kwapi's REST API."""

from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_readings
from nova_preempt.power import rest_client


class Kwapi:
    """Power source: the last values of all of Kwapi's probes, in one call."""

    NAME = 'kwapi'

    def __init__(self, conf, options):
        self._hosts = power_hosts.HostsFile(options.hosts_file)
        self._client = rest_client.make_adapter(conf, options.kwapi_url)

    def read(self, hosts):
        """Read all hosts; see nova_preempt.power.power_readings.Source."""
        with rest_client.answers_of('Kwapi'):
            probes = rest_client.call(self._client, 'GET',
                                      '/v1/probes/')['probes']
            return {
                host: power_readings.Reading(
                    host, probe.get('w'),
                    power_readings.from_epoch(probe.get('timestamp')))
                for host in hosts
                if (probe := probes.get(
                    self._hosts.source_name(host, self.NAME)))}
