# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Which hosts are on: decided now and then, seen to all the time."""

import datetime
import fnmatch

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import placement as placement_api
from nova_preempt.core.energy import candidates
from nova_preempt.core.energy import demand
from nova_preempt.core.energy import power as core
from nova_preempt.core.energy import steps
from nova_preempt.db import energy as db_energy
from nova_preempt.db import promises
from nova_preempt.power import compute_hosts
from nova_preempt.power import policies
from nova_preempt.power import reserved
from nova_preempt.power import switching

LOG = logging.getLogger(__name__)

_MINUTE = datetime.timedelta(minutes=1)
# Who has disabled which hosts may be known so long ago, in seconds, before
# one is woken in vain.
_HOSTS_MAX_AGE_S = 30
# That are not on their way yet.
_TO_WAKE = frozenset(steps.COMING) - {steps.WAKING}
_DEMAND = 'a request finds no other host'
_EXCLUDED = 'an operator has it left alone, see [energy]excluded_hosts'


class Control:
    """What nova-preempt-engine does about power.

    :param options: [energy] of the configuration
    :param database: a db.Database
    :param hosts: a fleet.Fleet
    :param switcher: a switching.Switcher
    :param forecast: a forecasts.Forecast
    :param efficiencies: returns {host: FLOPS per watt} of those that are
        known
    :param interval_s: how long after one step the next one follows
    """

    def __init__(self, options, database, hosts, switcher, forecast,
                 efficiencies, interval_s):
        self._options = options
        self._db = database
        self._reserved = reserved.Reserved(database)
        self._fleet = hosts
        self._switcher = switcher
        self._forecast = forecast
        self.efficiencies = efficiencies
        self._interval_s = interval_s
        self._done_at = {}
        self._failed = set()
        self._promised = frozenset()
        self._needed_queue_s = 0.0

    def step(self):
        """Do everything whose time has come."""
        now = self._switcher.now()
        states = db_energy.get_power(self._db)
        needed = self._reserved.hosts(now, now + _seconds(
            max(self._options.reserved_horizon_s,
                self._options.boot_timeout_s)
            + self._queue_s(states, states)))
        self._needed_queue_s = self._queue_s(states, needed)
        note = self._is_time('note', self._options.note_interval_s)
        failed = {(name, state.since) for name, state in states.items()
                  if state.state == db_energy.FAILED}
        if failed - self._failed:
            # Others are to take their place.
            self._done_at.pop('switch', None)
        self._failed = failed
        decide = self._is_time('switch', self._options.switch_interval_s)
        if self._wake_due(states, needed):
            states = db_energy.get_power(self._db)
        self._promised = self._keep_promises(states)
        if not (note or decide or any(state.state in switching.MOVING
                                      for state in states.values())):
            return
        away = None
        try:
            hosts = self._fleet.read()
        except compute_hosts.CellsAway as exc:
            # Those of other cells go on with what was decided before.
            away, hosts = exc, self._fleet.read(partly=True)
        else:
            if note:
                self._note(states, hosts, now)
            if decide:
                self.decide(hosts, needed)
        # Those that do not move are looked at less often.
        states = db_energy.get_power(
            self._db, None if note else switching.MOVING)
        tokens = None
        if any(state.state == db_energy.ASLEEP for state in states.values()):
            tokens = self._fleet.tokens()
        self._switcher.advance(states.values(), hosts, tokens)
        if away is not None:
            raise away

    def _is_time(self, what, pause_s):
        now = self._switcher.now()
        done_at = self._done_at.get(what)
        # A clock that was turned back must not stop us.
        if done_at is not None and (
                _seconds(0) <= now - done_at < _seconds(pause_s)):
            return False
        self._done_at[what] = now
        return True

    # -- noting ----------------------------------------------------------

    def _note(self, states, hosts, now):
        """Count for how long hosts have been idle."""
        gone = states.keys() - hosts.keys()
        if gone:
            db_energy.forget_power(self._db, gone)
        for name, host in hosts.items():
            if host.is_ours and _state(states, name) == db_energy.ON:
                # A crash has left it so, or another database knew of it.
                db_energy.set_power(
                    self._db, name, steps.adopted(host.up), now,
                    from_states=(db_energy.ON,),
                    reason='its compute service was disabled by us')
        idle = {
            name for name, host in hosts.items()
            if is_usable(states, host) and not host.servers
            and self._is_empty(host)}
        db_energy.note_idle(self._db, idle, now, core.max_gap_s(
            self._options.note_interval_s, self._interval_s))

    def _is_empty(self, host):
        """One of which nobody can tell does not count as idle."""
        try:
            return self._fleet.is_empty(host)
        except (placement_api.PlacementError, cell_calls.CellAway,
                db_exc.DBError) as exc:
            LOG.warning('Host %(host)s is not noted as idle: %(exc)s',
                        {'host': host.name, 'exc': exc})
            return False

    # -- deciding --------------------------------------------------------

    def decide(self, hosts, needed):
        """Begin to wake hosts, or to put them to sleep."""
        options = self._options
        now = self._switcher.now()
        states = db_energy.get_power(self._db)
        wakes, sleeps = self._switcher.left(states)
        policy = policies.policy(
            options, self._fleet.minimums(
                options.minimum_hosts_per_aggregate), wakes, sleeps)
        switches = core.decide(self._candidates(states, hosts, needed),
                               self._forecast.hosts(now), policy)
        metrics.POWER_REQUIRED.set(switches.required)
        why = f'{switches.required} hosts are needed'
        for name in switches.wake:
            self._switcher.wake(name, why)
        for name in switches.sleep:
            self._switcher.put_to_sleep(name, why)
        if len(switches.wake) == wakes or len(switches.sleep) == sleeps:
            # As many as a minute allows: there may be more to do in the next.
            self._done_at['switch'] = now + _MINUTE - _seconds(
                options.switch_interval_s)

    def _candidates(self, states, hosts, needed):
        efficiency = self.efficiencies()
        horizon_s = self._options.reserved_horizon_s + self._queue_s(
            states, needed)
        found = []
        for name, host in hosts.items():
            state = states.get(name)
            on = candidates.is_on(
                _state(states, name), usable=is_usable(states, host),
                operators=host.is_operators)
            if on is None:
                continue
            reserved, due = candidates.reserved(
                self._start(name, state, needed[name]) if name in needed
                else None, horizon_s, self._options.max_wakes_per_minute,
                self._interval_s, on=on)
            found.append(core.PowerHost(
                name, on, busy=on and self._is_busy(host, state),
                idle_intervals=state.idle_intervals if state else 0,
                efficiency=efficiency.get(name), reserved=reserved, due=due,
                excluded=self.is_excluded(name), aggregates=host.aggregates))
        return found

    def _is_busy(self, host, state):
        """Whether servers are on it, as far as it was looked at yet."""
        if state is None:
            return True
        noted_at = self._done_at.get('note')
        return candidates.is_busy(
            state.state, state.idle_intervals, servers=bool(host.servers),
            looked_at=noted_at is None or state.since < noted_at,
            promised=host.name in self._promised)

    def is_excluded(self, name):
        """Whether an operator wants it to be left alone."""
        return any(fnmatch.fnmatchcase(name, pattern)
                   for pattern in self._options.excluded_hosts)

    def off(self, states, stopped):
        """{name: core.energy.candidates.Off} of those that can be woken.

        :param states: {host: db.energy.HostPower}
        :param stopped: why no host is switched now, '' if hosts are
        """
        now = self._switcher.now()
        limits = policies.limits(self._options)
        return {
            name: candidates.off(
                state.state, (now - state.since).total_seconds(),
                state.boots, lead_s=self._lead_s(state),
                queue_s=self._needed_queue_s, limits=limits,
                stopped=stopped or (_EXCLUDED if self.is_excluded(name)
                                    else ''))
            for name, state in states.items() if state.state in steps.COMING}

    def _lead_s(self, state):
        return candidates.lead_s(self.boot_s([state]), self._interval_s)

    def boot_s(self, states):
        """How long the slowest of these hosts may take to boot."""
        return candidates.boot_s(
            (state and state.boot_s for state in states),
            self._options.boot_time_s)

    def _start(self, name, state, start_at):
        return core.Start(
            name, (start_at - self._switcher.now()).total_seconds(),
            self._lead_s(state))

    def _due(self, *starts):
        return core.due(starts, self._options.max_wakes_per_minute,
                        self._interval_s)

    def _queue_s(self, states, names):
        """How long it takes to wake those of these that are off."""
        return core.queue_s(
            sum(_state(states, name) in candidates.OFF for name in names),
            self._options.max_wakes_per_minute, self._interval_s)

    def _wake_due(self, states, needed):
        """Wake hosts whose reservation begins; whether there are any."""
        due = self._due(*(
            self._start(name, states.get(name), needed[name])
            for name in self.switchable(
                name for name in needed
                if _state(states, name) in candidates.OFF)))
        wakes, _sleeps = self._switcher.left(states)
        for name in due[:wakes]:
            self._switcher.wake(name, 'a reservation of it begins')
        return bool(due)

    def switchable(self, names):
        """Those of these that may be switched: no operator wants them."""
        names = [name for name in names if not self.is_excluded(name)]
        if not names:
            return []
        hosts = self._fleet.read(_HOSTS_MAX_AGE_S, partly=True)
        return [name for name in names
                if name in hosts and not hosts[name].is_operators]

    # -- requests that wait ----------------------------------------------

    @property
    def promised_s(self):
        """How long a host is kept for a request, which may be gone."""
        return policies.promised_s(self._options)

    def wake_promised(self, states, names):
        """Wake as many of these as may be now, in this order."""
        for name in names:
            if _state(states, name) in candidates.OFF and (
                    not self._switcher.wake_if_allowed(name, _DEMAND)):
                break

    def ready_s(self, names):
        """How long it may take until all of these are on, in seconds."""
        states = db_energy.get_power(self._db)
        waiting = [name for name in self._promised_hosts()
                   if _state(states, name) in _TO_WAKE]
        return candidates.ready_s(
            waiting, names, self.boot_s([states.get(name) for name in names]),
            self._options.max_wakes_per_minute, self._interval_s)

    def _promised_hosts(self):
        """In the order in which they are to wake: as requests came."""
        found = promises.get(
            self._db, self._switcher.now() - _seconds(self.promised_s))
        return list(dict.fromkeys(item.host for item in found))

    def _keep_promises(self, states):
        """Wake those whose turn has come; the names of all that are kept."""
        found = demand.sort_out(
            self._promised_hosts(), lambda name: _state(states, name),
            self.switchable)
        if found.lost:
            promises.forget(self._db, found.lost)
        self.wake_promised(states, found.coming)
        return found.kept


def _seconds(number):
    return datetime.timedelta(seconds=number)


def _state(states, name):
    return states[name].state if name in states else db_energy.ON


def is_usable(states, host):
    """Whether it is on, and servers may come to it."""
    return candidates.is_usable(_state(states, host.name), up=host.up,
                                disabled=host.disabled)
