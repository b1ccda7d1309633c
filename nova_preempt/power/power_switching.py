# SPDX-License-Identifier: Apache-2.0
"""Powers hosts off and on, step by step.

core.energy.power_steps decides on the next step. A state is written before its
action, and each step can be repeated, so another engine continues after a
crash. Only advance() powers a host off, and only by compare and swap of its
state, so a host that was woken meanwhile stays on. Right before each action
this engine has to be the leader still, and before a host loses its power its
state must not have changed, its service be disabled by us, and no server be on
it.
"""

import concurrent.futures
import dataclasses
import datetime
import threading
import time
from typing import Any

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt.cloud import nova_api
from nova_preempt.cloud import placement_api
from nova_preempt.core import times
from nova_preempt.core.energy import power_steps
from nova_preempt.db import energy_store
from nova_preempt.power import compute_hosts
from nova_preempt.power import power_errors

LOG = logging.getLogger(__name__)

# A host may take minutes to shut down, and uses a thread meanwhile.
_THREADS = 64

# After so many seconds a look at a host does not count any more: what came
# after it, such as the database, was slow, and a server may have come.
_LOOK_AGE_S = 10.0

_FAILURES = (power_errors.PowerError, power_errors.HostsFileError,
             nova_api.NovaError, placement_api.PlacementError)


@dataclasses.dataclass
class _HostSighting:
    """Observations of a host in its current state.

    :param since: when it entered the state, by the database
    :param began_s: the same by the monotonic clock of this process
    :param seen_at: last report of its service when the state was first seen
    :param closed_at_s: when its service was first seen disabled, monotonic
    :param asked_s: seconds in its state when it was first asked to shut down
        or power on, infinite if it was not
    :param error: the last error
    :param token: ComputeHosts.tokens() of it when it was empty
    """

    state: str
    since: datetime.datetime
    began_s: float
    seen_at: datetime.datetime | None
    closed_at_s: float | None = None
    asked_s: float = float('inf')
    error: str = ''
    token: Any = None


class _HostSightings:
    """Keeps a _HostSighting of each host while its state lasts.

    Setting the clock of this machine does not age hosts: the database's time
    of a state counts only when the state is first seen.

    :param now: returns now, as the database has it
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, now, monotonic):
        self._now = now
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._seen = {}       # name: _HostSighting

    def see(self, item, host):
        """Return (a _HostSighting, seconds in its state, seconds disabled)."""
        with self._lock:
            now_s = self._monotonic()
            seen = self._seen.get(item.host)
            if seen is None or (seen.state, seen.since) != (item.state,
                                                            item.since):
                age_s = max(0.0, (self._now() - item.since).total_seconds())
                seen = self._seen[item.host] = _HostSighting(
                    item.state, item.since, now_s - age_s, host.seen_at)
            if not host.disabled:
                seen.closed_at_s = None
            elif seen.closed_at_s is None:
                seen.closed_at_s = now_s
            closed_s = 0.0 if seen.closed_at_s is None else (
                now_s - seen.closed_at_s)
            return seen, now_s - seen.began_s, closed_s

    def forget(self, name):
        """Forget a host that has entered another state."""
        with self._lock:
            self._seen.pop(name, None)


class PowerSwitcher:
    """Powers hosts off and on in threads.

    :param get_options: returns the core's energy_observation.Options of now
    :param database: a db.Database
    :param nova: a nova_preempt.cloud.nova_api.NovaAPI
    :param hosts: a compute_hosts.ComputeHosts
    :param driver: has power_on(host), shut_down(host), switch_off(host) and
        is_on(host)
    :param clock: returns now, timezone-aware
    :param may_act: returns whether this engine is the leader, and power
        control is neither disabled nor paused
    :param monotonic: returns seconds of a clock that is never set
    """

    def __init__(self, get_options, database, nova, hosts, driver, clock,
                 may_act=lambda: True, monotonic=time.monotonic):
        self._get_options = get_options
        self._db = database
        self._nova = nova
        self._fleet = hosts
        self._driver = driver
        self._clock = clock
        self._may_act = may_act
        self._waking = threading.Lock()
        self._seen = _HostSightings(self.now, monotonic)
        self._steps = {}      # name: the Future of a step
        self._pool = concurrent.futures.ThreadPoolExecutor(
            _THREADS, thread_name_prefix='power')

    def now(self):
        """Return now, naive and in UTC, as the database has it."""
        return self._clock().astimezone(datetime.timezone.utc).replace(
            tzinfo=None)

    # -- requests --------------------------------------------------------

    def put_to_sleep(self, name, reason):
        """Begin to power a host off; return whether it was on."""
        return self._move(name, (power_steps.ON,), power_steps.EMPTYING,
                          reason)

    def wake(self, name, reason):
        """Begin to power a host on; return whether it was off or emptying.

        The limit of wakes a minute applies. A host that is just being powered
        off has to be off first.
        """
        # NOTE: serialized, as each wake counts against the limit.
        with self._waking:
            return self.left() > 0 and self._move(
                name, (power_steps.EMPTYING, power_steps.ASLEEP,
                       power_steps.FAILED), power_steps.WAKING, reason)

    def left(self):
        """Return how many hosts may be woken in this minute."""
        return self._get_options().left(
            energy_store.get_power(self._db).values(),
            times.microseconds(self.now()))[0]

    def _move(self, name, before, state, reason, **values):
        moved = energy_store.set_power(
            self._db, name, state, self.now(), from_states=before,
            reason=reason, **values)
        if moved:
            self._seen.forget(name)
            metrics.POWER_MOVES.labels(state).inc()
            LOG.log(logging.ERROR if state == power_steps.FAILED
                    else logging.INFO,
                    'Host %(host)s is %(state)s: %(reason)s',
                    {'host': name, 'state': state, 'reason': reason})
        return moved

    # -- steps -----------------------------------------------------------

    def advance(self, states, hosts, tokens=None):
        """Begin the next step of each host without waiting for it.

        A host whose last step is still running is skipped.

        :param states: db.energy_store.HostPowers
        :param hosts: {name: host_records.ComputeHost}, read just now
        :param tokens: see compute_hosts.ComputeHosts.tokens()
        """
        for item in states:
            name = item.host
            if item.state != power_steps.ON and name in hosts and (
                    name not in self._steps or self._steps[name].done()):
                host = hosts[name]
                self._steps[name] = self._pool.submit(
                    self._step, item, host,
                    (tokens or {}).get(host.provider_uuid))

    def wait(self):
        """Wait for the steps that advance() has begun."""
        concurrent.futures.wait(self._steps.values())

    def close(self):
        """Stop without waiting; the next engine continues open steps."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _step(self, item, host, token):
        steps = _HostSteps(self, item, host, token)
        try:
            steps.run()
        except _FAILURES as exc:
            steps.complain(exc)
        except Exception:
            LOG.exception('Host %(host)s cannot leave the state %(state)s for '
                          'now.', {'host': host.name, 'state': item.state})


class _HostSteps:
    """Takes the steps of one host that are possible now.

    :param switcher: the PowerSwitcher in whose thread it runs
    :param item: its db.energy_store.HostPower
    :param host: its host_records.ComputeHost, read a moment ago
    :param token: see compute_hosts.ComputeHosts.tokens(), None if not known
    """

    def __init__(self, switcher, item, host, token):
        self._switcher = switcher
        self._fleet = switcher._fleet
        self._driver = switcher._driver
        self._nova = switcher._nova
        self._item = item
        self._host = host
        self._token = token
        self._facts = None

    def run(self):
        """Take steps until none is possible now.

        An engine that is no longer the leader, or is paused, takes none.
        """
        self._learn()
        while self._switcher._may_act():
            step = power_steps.next_step(
                self._facts, self._switcher._get_options().boot_timeout_s)
            # Each method below has the name of its action; WAIT has none.
            act = getattr(self, f'_{step.act.name.lower()}', None)
            if act is None or not act(step):
                return

    def complain(self, exc):
        """Log an error of the host once while it lasts."""
        item, error = self._item, str(exc)
        metrics.POWER_ERRORS.labels(item.state).inc()
        if self._seen.error != error:
            self._seen.error = error
            LOG.warning('Host %(host)s remains %(state)s for now: %(exc)s',
                        {'host': item.host, 'state': item.state, 'exc': exc})

    def _learn(self, **values):
        """Reset the facts to those that need no query."""
        item, host = self._item, self._host
        self._seen, age_s, closed_s = self._switcher._seen.see(item, host)
        self._facts = power_steps.HostFacts(
            item.state, age_s, closed_s, host.up,
            # NOTE: by its reports alone, as clocks of hosts differ.
            host.up and host.seen_at != self._seen.seen_at,
            host.disabled, host.is_ours, item.boots,
            max(0.0, age_s - self._seen.asked_s), error=self._seen.error,
            **values)

    def _know(self, **values):
        self._facts = dataclasses.replace(self._facts, **values)
        return True

    # -- queries ---------------------------------------------------------

    def _ask_power(self, _step):
        try:
            on = self._driver.is_on(self._item.host)
        except (power_errors.PowerError, power_errors.HostsFileError) as exc:
            self.complain(exc)
            if self._item.state == power_steps.SLEEPING:
                # NOTE: it may not have been asked to shut down.
                self._seen.asked_s = float('inf')
            return self._know(power=power_steps.Power.UNKNOWN, error=str(exc))
        return self._know(power=power_steps.Power.ON if on
                          else power_steps.Power.OFF)

    def _look(self, _step):
        if self._token is not None and self._seen.token == self._token:
            # NOTE: a sleeping host gets servers through Placement only.
            return self._know(empty=True, running=False)
        self._learn(power=self._facts.power, tried=self._facts.tried)
        found = self._fleet.occupants(self._host)
        if not self._is_as_before():
            return False
        empty = power_steps.is_empty(found)
        if empty and self._item.state == power_steps.ASLEEP:
            self._seen.token = self._token
        host = self._host
        return self._know(
            empty=empty, running=bool(found.servers), up=host.up,
            disabled=host.disabled, ours=host.is_ours)

    def _is_as_before(self):
        """Return whether its state is unchanged; read its service again."""
        item = energy_store.get_power_of(self._switcher._db, self._item.host)
        if item is None or (item.state, item.since) != (
                self._item.state, self._item.since):
            return False
        self._host = self._fleet.reread(self._host)
        return True

    # -- actions ---------------------------------------------------------

    def _disable(self, _step):
        if self._is_as_before() and not self._host.disabled:
            self._nova.disable_service(
                self._host.service_uuid,
                f'{compute_hosts.REASON}no servers, powered off at '
                f'{self._switcher.now():%Y-%m-%dT%H:%M:%SZ}')
        return False

    def _shut_down(self, _step):
        return self._take_power(self._driver.shut_down, cut=False)

    def _switch_off(self, _step):
        LOG.warning('Host %s is powered off without a shutdown, since it '
                    'does not shut down.', self._item.host)
        return self._take_power(self._driver.switch_off, cut=True)

    def _take_power(self, call, cut):
        seen, age_s, _ = self._switcher._seen.see(self._item, self._host)
        if age_s - self._facts.age_s > _LOOK_AGE_S:
            return self._know(empty=None)
        seen.asked_s = min(seen.asked_s, age_s)
        try:
            call(self._item.host)
        except power_errors.PowerError as exc:
            self.complain(exc)
        # NOTE: the call may have taken minutes, or failed at once.
        self._host = self._fleet.reread(self._host)
        self._learn()
        return self._know(tried=cut or (
            self._facts.asked_s < power_steps.POWER_OFF_TIMEOUT_S))

    def _power_on(self, _step):
        if self._is_as_before():
            self._seen.asked_s = min(self._seen.asked_s, self._facts.age_s)
            self._driver.power_on(self._item.host)
        return False

    def _move(self, step):
        item = self._item
        if (step.enable or step.cycle) and not self._is_as_before():
            return False
        # NOTE: an operator may have disabled it meanwhile.
        if step.enable and self._host.is_ours:
            self._nova.enable_service(self._host.service_uuid)
        # NOTE: serialized, as each wake counts against the limit.
        with self._switcher._waking:
            if (power_steps.is_limited(step, self._facts)
                and self._switcher.left() <= 0) or not self._switcher._move(
                    item.host, (item.state,), step.state,
                    step.reason or item.reason, boots=step.boots,
                    boot_s=power_steps.measured_boot_s(step, self._facts)):
                return False
        if step.cycle:
            self._driver.switch_off(item.host)
        if step.state != power_steps.SLEEPING:
            return False
        self._item = energy_store.get_power_of(self._switcher._db, item.host)
        if self._item is None or self._item.state != step.state:
            return False
        self._learn()
        return True
