# SPDX-License-Identifier: Apache-2.0
"""Samples power draw and use for forecasts and reports."""

import datetime

from nova_preempt import metrics
from nova_preempt.cloud import instances
from nova_preempt.core.energy import host_classification
from nova_preempt.core.energy import power_steps
from nova_preempt.db import energy_store

#: How long samples are kept for forecasts and reports, in seconds: a sample a
#: minute for a quarter of a year is a few megabytes.
RETENTION_S = 90 * 86400
_PURGE_AFTER = datetime.timedelta(hours=1)


class EnergySampler:
    """Reads power draw and use, and stores samples.

    :param database: a db.Database
    :param hosts: a compute_hosts.ComputeHosts
    :param readings: a power_readings.PowerReader
    :param idle_watts: returns {host: watts} that an idle host draws, where
        known
    :param get_cells: returns {uuid: CellMapping} to look for servers in
    :param clock: returns now, timezone-aware
    """

    def __init__(self, db, hosts, readings, idle_watts, get_cells, clock):
        self._db = db
        self._fleet = hosts
        self._readings = readings
        self._idle_watts = idle_watts
        self._get_cells = get_cells
        self._clock = clock
        self._purged_at = None

    def observe(self):
        """Take a sample."""
        hosts = self._fleet.read()
        known = energy_store.get_power(self._db)
        states = {name: known[name].state if name in known else power_steps.ON
                  for name in hosts}
        readings = self._readings.read(sorted(hosts))
        energy_store.put_readings(self._db,
                                  [energy_store.HostPowerReading(
                                       name, reading.watts, _naive(reading.at))
                                   for name, reading in readings.items()])
        watts = (sum(reading.watts for reading in readings.values())
                 if readings else None)
        now = _naive(self._clock())
        energy_store.add_sample(self._db,
                                self._sample(states, hosts, watts, now))
        self._count(states, watts)
        close_ended(self._db, self._get_cells)
        if self._purged_at is None or (
                abs(now - self._purged_at) >= _PURGE_AFTER):
            self._purged_at = now
            energy_store.purge(self._db, now - datetime.timedelta(
                seconds=RETENTION_S))

    def _sample(self, states, hosts, watts, now):
        asleep = {name for name, state in states.items()
                  if state == power_steps.ASLEEP}
        idle_watts = self._idle_watts()
        on = [host for host in hosts.values()
              if states[host.name] == power_steps.WAKING
              or host_classification.is_usable(states[host.name], up=host.up,
                                               disabled=host.disabled)]
        return energy_store.EnergySample(
            sampled_at=now, hosts_on=len(on),
            hosts_busy=sum(host.servers > 0 for host in on),
            hosts_asleep=len(asleep),
            cores_total=sum(host.vcpus for host in hosts.values()),
            cores_off=sum(hosts[name].vcpus for name in asleep),
            cores_used=sum(host.vcpus_used for host in hosts.values()),
            watts=watts,
            watts_saved=sum(idle_watts.get(name, 0.0) for name in asleep))

    @staticmethod
    def _count(states, watts):
        for name in power_steps.STATES:
            metrics.POWER_HOSTS.labels(name).set(
                sum(state == name for state in states.values()))
        if watts is not None:
            metrics.POWER_WATTS.set(watts)


def close_ended(database, get_cells):
    """Store how long servers ran that had waited for hosts to wake.

    Reports relate the delay by saving energy to that time.

    :param get_cells: returns {uuid: CellMapping} to look for servers in
    """
    for uuid in {wake.server_uuid for wake in energy_store.get_wakes(database)
                 if wake.duration_s is None}:
        duration_s = _duration_s(uuid, get_cells())
        if duration_s is not None:
            energy_store.set_duration(database, uuid, duration_s)


def _duration_s(uuid, mappings):
    """Return how long a server ran, None if it exists, 0 if not known."""
    for cell in list(mappings.values()):
        server = instances.read_cell(cell, [uuid], deleted=True).get(uuid)
        if server is None:
            continue
        if not server.deleted:
            return None
        if server.launched_at and server.ended_at:
            return (server.ended_at - server.launched_at).total_seconds()
        return 0.0
    return 0.0


def _naive(time):
    return time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
