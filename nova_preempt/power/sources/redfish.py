# SPDX-License-Identifier: Apache-2.0
"""The power source "redfish": the controller of each host."""

from concurrent import futures

from oslo_log import log as logging

from nova_preempt.power import power_errors
from nova_preempt.power import power_readings
from nova_preempt.power.drivers import redfish_power

LOG = logging.getLogger(__name__)

# A call of a controller takes about a second, and each host has one.
_MAX_THREADS = 32


class Redfish:
    """Power source: the power draw of a host's chassis.

    It is read from the first that exists: environment metrics of the chassis,
    its power control, its only power sensor for the chassis as a whole.
    """

    NAME = 'redfish'

    def __init__(self, conf, options, clock=power_readings.utcnow):
        del conf
        self._controllers = redfish_power.Controllers(options,
                                                      power_readings.TIMEOUT_S)
        self._clock = clock

    def read(self, hosts):
        """Read hosts; see nova_preempt.power.power_readings.Source.

        Controllers that do not answer in TIMEOUT_S have no reading.
        """
        hosts = [host for host in hosts if self._controllers.knows(host)]
        if not hosts:
            return {}
        pool = futures.ThreadPoolExecutor(min(len(hosts), _MAX_THREADS))
        try:
            calls = {pool.submit(self._read, host): host for host in hosts}
            done, _late = futures.wait(calls, power_readings.TIMEOUT_S)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        found = {}
        failed = {}
        for call in done:
            try:
                found[calls[call]] = call.result()
            except power_errors.PowerError as exc:
                failed[exc.host] = exc
        if failed and len(failed) == len(hosts):
            raise power_errors.SourceError(str(min(failed.items())[1]))
        for host in sorted(failed):
            LOG.debug('No reading: %s', failed[host])
        return found

    def _read(self, host):
        with self._controllers.system(host) as (system, fetch):
            for chassis in system.chassis:
                watts = find_watts(chassis.json, fetch)
                if watts is not None:
                    return power_readings.Reading(host, watts, self._clock())
        raise power_errors.PowerError(host, 'its controller reports no watts')


def find_watts(chassis, fetch):
    """Return the watts of a chassis, None without any.

    :param chassis: its JSON
    :param fetch: returns the JSON at a path, None if it does not exist
    """
    metrics = _follow(chassis, 'EnvironmentMetrics', fetch)
    watts = metrics.get('PowerWatts', {}).get('Reading')
    if watts is not None:
        return watts
    # NOTE: some list parts of the host after the whole.
    controls = [control.get('PowerConsumedWatts') for control in
                _follow(chassis, 'Power', fetch).get('PowerControl', ())]
    controls = [watts for watts in controls if watts is not None]
    if controls:
        return max(controls)
    sensors = [fetch(member['@odata.id']) or {} for member in
               _follow(chassis, 'Sensors', fetch).get('Members', ())]
    power = [sensor for sensor in sensors
             if sensor.get('ReadingType') == 'Power'
             and sensor.get('Reading') is not None]
    whole = [sensor for sensor in power
             if sensor.get('PhysicalContext') == 'Chassis']
    return (whole or power)[0]['Reading'] if len(whole or power) == 1 else None


def _follow(document, key, fetch):
    path = (document.get(key) or {}).get('@odata.id')
    return (fetch(path) if path else None) or {}


