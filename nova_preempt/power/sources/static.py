# SPDX-License-Identifier: Apache-2.0
"""The power source "static": a file, for constant draws and tests."""

from nova_preempt.power import hosts_file as power_hosts
from nova_preempt.power import power_errors
from nova_preempt.power import power_readings

_SCHEMA = {'type': 'object', 'additionalProperties': {'type': 'number'}}


class Static:
    """Power source: watts by node name in static_file, read each time."""

    NAME = 'static'

    def __init__(self, conf, options, clock=power_readings.utcnow):
        del conf
        self._path = options.static_file
        self._clock = clock

    def read(self, hosts):
        """Read the file; see nova_preempt.power.power_readings.Source."""
        if not self._path:
            raise power_errors.SourceError('[energy]static_file is not set')
        try:
            watts = power_hosts.load_yaml(self._path, _SCHEMA)
        except power_errors.HostsFileError as exc:
            raise power_errors.SourceError(str(exc)) from exc
        now = self._clock()
        return {host: power_readings.Reading(host, watts[host], now)
                for host in hosts if host in watts}
