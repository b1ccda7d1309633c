# SPDX-License-Identifier: Apache-2.0
"""The power source "prometheus": a query with the host as a label."""

import re

from nova_preempt.core.energy import efficiency_ranking
from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_errors
from nova_preempt.power import power_readings
from nova_preempt.power import rest_client

# Queries by exporter; %s is the label that names the host. A controller that
# reports parts of a host reports the whole as well, which is the maximum.
QUERIES = {
    # prometheus-community/ipmi_exporter, collector dcmi
    'ipmi': 'max by (%s) (ipmi_dcmi_power_consumption_watts)',
    # jenningsloy318/redfish_exporter
    'redfish': 'max by (%s) (redfish_chassis_power_average_consumed_watts)',
    # mrlhansen/idrac_exporter, which speaks Redfish to iDRAC, iLO, XClarity
    'idrac': 'max by (%s) (idrac_power_control_consumed_watts)',
    # hubblo-org/scaphandre
    'scaphandre': 'max by (%s) (scaph_host_power_microwatts) / 1e6',
    # Kepler since 0.10: the whole host by Redfish, or processors by RAPL
    'kepler': 'max by (%s) (kepler_platform_watts)',
    'kepler_cpu': 'sum by (%s) '
                  '(kepler_node_cpu_watts{zone=~"package.*|dram.*"})',
    # Kepler before 0.10
    'kepler_joules': 'sum by (%s) '
                     '(rate(kepler_node_platform_joules_total[5m]))',
}

_PORT = re.compile(r':\d+$')


class Prometheus:
    """Power source: one query for all hosts, evaluated now.

    Prometheus dates its evaluation, not samples, so the query excludes samples
    that are older than a reading may be.
    """

    NAME = 'prometheus'

    def __init__(self, conf, options):
        self._hosts = power_hosts.HostsFile(options.hosts_file)
        self._label = options.prometheus_host_label
        query = options.prometheus_query
        self._data = {
            'query': QUERIES[query] % self._label if query in QUERIES
            else query, 'lookback_delta': f'{efficiency_ranking.MAX_AGE_S}s',
            'timeout': f'{power_readings.TIMEOUT_S}s'}
        self._token_file = options.prometheus_token_file
        self._client = rest_client.make_adapter(
            conf, options.prometheus_url, authenticate=False)

    def read(self, hosts):
        """Read all hosts; see nova_preempt.power.power_readings.Source."""
        with rest_client.answers_of('Prometheus'):
            answer = rest_client.call(
                self._client, 'POST', '/api/v1/query', data=self._data,
                headers=self._headers())
            if answer['data']['resultType'] != 'vector':
                raise power_errors.SourceError(
                    'the query must return a vector, not a '
                    f'{answer["data"]["resultType"]}')
            values = self._by_label(answer['data']['result'])
        found = {}
        for host in hosts:
            name = self._hosts.source_name(host, self.NAME)
            if name in values:
                watts, at = values[name]
                found[host] = power_readings.Reading(host, watts, at)
        return found

    def _headers(self):
        if not self._token_file:
            return {}
        try:
            # NOTE: read each time, as tokens are renewed while services run.
            with open(self._token_file, encoding='ascii') as stream:
                return {'Authorization': f'Bearer {stream.read().strip()}'}
        except (OSError, UnicodeDecodeError) as exc:
            raise power_errors.SourceError(str(exc)) from exc

    def _by_label(self, result):
        """Return {label, with and without port: (watts, time)}."""
        values = {}
        twice = set()
        for series in result:
            label = series['metric'].get(self._label)
            if label is None:
                raise power_errors.SourceError(
                    f'the query returns a series without label {self._label}')
            at_s, watts = series['value']
            for name in {label, _PORT.sub('', label)}:
                if name in values:
                    twice.add(name)
                values[name] = float(watts), power_readings.from_epoch(at_s)
        # NOTE: a label of two series is ambiguous.
        return {name: value for name, value in values.items()
                if name not in twice}
