# SPDX-License-Identifier: Apache-2.0
"""Steps the controller of energy, and carries out its intents."""

import datetime
import functools

from oslo_db import exception as db_exc
from oslo_log import log as logging
import oslo_messaging as messaging

from nova_preempt import metrics
from nova_preempt import rpc
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import placement_api
from nova_preempt.core import times
from nova_preempt.core.energy import demand_forecast
from nova_preempt.core.energy import energy_controller
from nova_preempt.core.energy import power_steps
from nova_preempt.core.energy import wake_choice
from nova_preempt.core.model import SECOND
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import energy_store
from nova_preempt.db import reservation_calendar
from nova_preempt.db import sleeping_host_claims
from nova_preempt.power import compute_hosts

LOG = logging.getLogger(__name__)

# How old the disabled states of hosts may be when hosts are chosen to wake, in
# seconds; a host disabled since would be woken in vain.
_HOSTS_MAX_AGE_S = 30


class Observed:
    """The cloud as a step observes it; see core.energy.energy_observation.

    :param control: the EnergyLoop that steps
    :ivar away: the CellsUnreadable because of which hosts are missing, if any
    """

    def __init__(self, control):
        self._control = control
        self._db = control.database
        self.options = control.get_options()
        self.now = control.switcher.now()
        self.now_us = times.microseconds(self.now)
        self.away = None

    @functools.cached_property
    def states(self):
        return energy_store.get_power(self._db)

    def renew(self):
        """Read the power states again when they are next used."""
        self.__dict__.pop('states', None)

    @property
    def in_state(self):
        return {state: {name: host for name, host in self.states.items()
                        if host.state == state}
                for state in power_steps.NOT_ON}

    def changed_since(self, since_us):
        return self.states.values()

    @functools.cached_property
    def hosts(self):
        try:
            return self._control.hosts.read()
        except compute_hosts.CellsUnreadable as exc:
            # NOTE: hosts of the other cells are still switched.
            self.away = exc
            return self._control.hosts.read(partly=True)

    @property
    def is_whole(self):
        return self.hosts is not None and self.away is None

    @property
    def recent_hosts(self):
        return self._control.hosts.read(_HOSTS_MAX_AGE_S, partly=True)

    def is_empty(self, name):
        """Return whether nothing uses a host; False if that is not known."""
        try:
            return self._control.hosts.is_empty(self.hosts[name])
        except (placement_api.PlacementError, cell_calls.CellDown,
                db_exc.DBError) as exc:
            LOG.warning('Host %(host)s does not count as idle: %(exc)s',
                        {'host': name, 'exc': exc})
            return False

    def needed(self, within_s):
        now_s = reservation_model.to_s(self.now)
        return {
            host: start_s - self.now_us / SECOND for host, start_s
            in self._control.calendar.read().leases.needed(
                now_s, now_s + int(within_s)).items()}

    @property
    def promised(self):
        since = self.now - datetime.timedelta(seconds=self.options.promised_s)
        return list(dict.fromkeys(item.host for item in
                                  sleeping_host_claims.get(self._db, since)))

    def loads(self, since_s, until_s):
        return [demand_forecast.Load(reservation_model.to_s(sample.sampled_at),
                                     sample.hosts_busy)
                for sample in energy_store.get_samples(
                    self._db, reservation_model.from_s(since_s),
                    reservation_model.from_s(until_s))]

    @property
    def efficiencies(self):
        return self._control.efficiencies()

    @property
    def minimums(self):
        return self._control.hosts.minimums(
            self.options.minimum_hosts_per_aggregate)


class EnergyLoop:
    """Steps the energy controller and carries out its intents.

    :param get_options: returns the core's energy_observation.Options of now
    :param database: a db.Database
    :param hosts: a compute_hosts.ComputeHosts
    :param switcher: a power_switching.PowerSwitcher
    :param efficiencies: returns {host: FLOPS per watt} where known
    """

    def __init__(self, get_options, database, hosts, switcher, efficiencies):
        self.get_options = get_options
        self.database = database
        self.hosts = hosts
        self.switcher = switcher
        self.efficiencies = efficiencies
        self.calendar = reservation_calendar.CalendarCache(database)
        self._memory = energy_controller.Memory()

    def step(self):
        """Take all steps that are due.

        :returns: after how many seconds to repeat it
        :raises CellsUnreadable: the hosts of some cells were not switched
        """
        observed = Observed(self)
        wake_at_us = observed.now_us
        while wake_at_us <= observed.now_us:
            observed.renew()
            step = energy_controller.step(observed, self._memory,
                                          observed.now_us)
            for intent in step.intents:
                self._carry_out(intent, observed)
            # NOTE: afterwards, so that what fails is retried.
            self._memory, wake_at_us = step.memory, step.wake_at_us
        metrics.POWER_REQUIRED.set(self._memory.required)
        if observed.away is not None:
            raise observed.away
        return (wake_at_us - observed.now_us) / SECOND

    def _carry_out(self, intent, observed):
        now = observed.now
        match intent:
            case energy_controller.Wake(host, why):
                self.switcher.wake(host, why)
            case energy_controller.PutToSleep(host, why):
                self.switcher.put_to_sleep(host, why)
            case energy_controller.CountIdleInterval(hosts, max_gap_s):
                energy_store.note_idle(self.database, hosts, now, max_gap_s)
            case energy_controller.Adopt(host, state, why):
                energy_store.set_power(
                    self.database, host, state, now,
                    from_states=(power_steps.ON,), reason=why)
            case energy_controller.ForgetHosts(hosts):
                energy_store.forget_power(self.database, hosts)
            case energy_controller.ForgetPromises(hosts):
                sleeping_host_claims.forget(self.database, hosts)
            case energy_controller.Advance(names):
                states = [observed.states[name] for name in names]
                sleeps = power_steps.ASLEEP in {each.state for each in states}
                self.switcher.advance(states, observed.hosts,
                                      self.hosts.tokens() if sleeps else None)

    def off(self, stopped):
        """Return {name: host_classification.OffHost} of hosts that can wake.

        :param stopped: why power control is off now, '' if it is on
        """
        observed = Observed(self)
        return {name: energy_controller.off(observed, self._memory,
                                            observed.now_us, name, stopped)
                for name, host in observed.states.items()
                if host.state in power_steps.COMING}

    def wake_for(self, request, servers, rooms):
        """Promise hosts to a request, and wake as many as allowed now.

        The controller wakes the others later.

        :param rooms: {host: how many servers of the request fit there}
        :returns: (names of promised hosts, seconds until all are on)
        """
        observed = Observed(self)
        sleepers = energy_controller.sleepers(observed, self._memory,
                                              observed.now_us, rooms)
        names = [item.host for item in sleeping_host_claims.make(
            self.database, request, lambda others: wake_choice.promise(
                request, servers, sleepers, others),
            observed.now, observed.options.promised_s,
            lambda name: name not in observed.states
            or observed.states[name].state == power_steps.ON)]
        for intent in energy_controller.wakes(observed, observed.now_us,
                                              names):
            self._carry_out(intent, observed)
        observed.renew()
        return names, energy_controller.ready_s(observed, names)


class PowerEndpoint:
    """RPC endpoint that wakes hosts; every engine serves it.

    It only writes to the database; the leading engine switches hosts.

    :param control: an EnergyLoop
    :param is_stopped: returns whether power control is off now
    """

    target = messaging.Target(namespace=rpc.ENERGY, version='1.0')

    def __init__(self, control, is_stopped):
        self._control = control
        self._is_stopped = is_stopped

    def wake(self, context, request, servers, hosts):
        """Wake hosts for a request; see nova_preempt.rpc.EngineClient."""
        names, boot_s = ([], 0.0) if self._is_stopped() else (
            self._control.wake_for(request, servers, hosts))
        return {'hosts': names, 'boot_s': boot_s}
