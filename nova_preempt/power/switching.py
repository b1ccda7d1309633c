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
"""Powering single hosts off and on, one step after the other.

    on -> emptying -> sleeping -> asleep -> waking -> on
                                               \\-> failed -> waking

A state is written before what it stands for is done, and every step may be
done twice: whoever comes after a crash goes on where it was. Nobody but
advance() powers a host off, and only from one state to the next (compare and
swap), so a host that was woken meanwhile stays on.
"""

import concurrent.futures
import datetime
import threading

from oslo_log import log as logging

from nova_preempt import metrics
from nova_preempt import placement as placement_api
from nova_preempt.db import energy as db_energy
from nova_preempt.power import errors
from nova_preempt.power import fleet
from nova_preempt.termination import nova_api

LOG = logging.getLogger(__name__)

#: Steps of hosts that somebody has to take soon.
MOVING = (db_energy.EMPTYING, db_energy.SLEEPING, db_energy.WAKING)

# A host may take minutes to shut down, and keeps a thread until then.
_THREADS = 64

# A server that was on its way to a host shows up within this time.
_WATCH_S = 600

_FAILURES = (errors.PowerError, errors.HostsFileError, nova_api.NovaError,
             placement_api.PlacementError)


class Switcher:
    """Takes the steps.

    :param options: [energy] of the configuration
    :param database: a db.Database
    :param nova: a nova_preempt.termination.nova_api.NovaAPI
    :param hosts: a fleet.Fleet
    :param driver: has power_on(host), power_off(host) and is_on(host)
    :param clock: returns now, timezone-aware
    """

    def __init__(self, options, database, nova, hosts, driver, clock):
        self._options = options
        self._db = database
        self._nova = nova
        self._fleet = hosts
        self._driver = driver
        self._clock = clock
        self._lock = threading.Lock()
        self._seen = {}       # name: (state, since, what was seen then)
        self._steps = {}      # name: the Future of a step
        self._pool = concurrent.futures.ThreadPoolExecutor(
            _THREADS, thread_name_prefix='power')

    def now(self):
        """Naive and in UTC, as the database has it."""
        return self._clock().astimezone(datetime.timezone.utc).replace(
            tzinfo=None)

    # -- what is asked for -----------------------------------------------

    def put_to_sleep(self, name, reason):
        """Begin to power a host off; whether it was on."""
        return self._move(name, (db_energy.ON,), db_energy.EMPTYING, reason)

    def wake(self, name, reason):
        """Begin to power a host on; whether it was off, or about to be.

        One that is just being powered off has to be off first.
        """
        return self._move(
            name, (db_energy.EMPTYING, db_energy.ASLEEP, db_energy.FAILED),
            db_energy.WAKING, reason)

    def _move(self, name, before, state, reason, boot_s=None):
        moved = db_energy.set_power(
            self._db, name, state, self.now(), from_states=before,
            reason=reason, boot_s=boot_s)
        if moved:
            with self._lock:
                self._seen.pop(name, None)
            metrics.POWER_MOVES.labels(state).inc()
            LOG.info('Host %(host)s is %(state)s: %(reason)s',
                     {'host': name, 'state': state, 'reason': reason})
        return moved

    # -- what follows from it --------------------------------------------

    def advance(self, states, hosts):
        """Begin the next step of each of these hosts, and do not wait.

        A host whose last step is still going on is left to it.

        :param states: db.energy.HostPowers
        :param hosts: {name: fleet.ComputeHost}, read just now
        """
        steps = {db_energy.EMPTYING: self._empty,
                 db_energy.SLEEPING: self._sleep,
                 db_energy.ASLEEP: self._asleep,
                 db_energy.WAKING: self._wake,
                 db_energy.FAILED: self._failed}
        for item in states:
            name = item.host
            if item.state in steps and name in hosts and (
                    name not in self._steps or self._steps[name].done()):
                self._steps[name] = self._pool.submit(
                    self._step, steps[item.state], item, hosts[name])

    def wait(self):
        """Wait for what advance() has begun."""
        concurrent.futures.wait(self._steps.values())

    def _step(self, step, state, host):
        try:
            step(state, host)
        except _FAILURES as exc:
            LOG.warning('Host %(host)s stays %(state)s for now: %(exc)s',
                        {'host': host.name, 'state': state.state,
                         'exc': exc})
            metrics.POWER_ERRORS.labels(state.state).inc()
            if state.state == db_energy.WAKING:
                self._check_boot_time(state, str(exc))
        except Exception:
            LOG.exception('Host %(host)s stays %(state)s for now',
                          {'host': host.name, 'state': state.state})

    def _empty(self, state, host):
        """Disable its service; power it off if it stays empty."""
        if host.is_operators or not host.up:
            self._keep(state, host, 'its service was disabled or is down')
        elif not host.disabled:
            self._nova.disable_service(host.service_uuid, self._text())
        # Counted from when this process has seen the service disabled.
        elif (self.now() - self._first_seen(state, self.now())
              >= _seconds(self._options.empty_checks_s)):
            if not self._fleet.is_empty(host):
                self._keep(state, host, 'a server has come to it')
            elif self._move(host.name, (db_energy.EMPTYING,),
                            db_energy.SLEEPING, state.reason):
                self._power_off(host.name, state.reason)

    def _sleep(self, state, host):
        """Go on, or see that it is off."""
        if self._see_off(host.name, state.reason):
            return
        options = self._options
        if self.now() - state.since >= _seconds(
                options.power_off_timeout_s + options.boot_timeout_s):
            self._keep(state, host, 'it could not be powered off')
        elif host.is_ours and self._fleet.is_empty(host):
            self._power_off(host.name, state.reason)
        # Else it is too late or too early to turn back: once it is off, what
        # has come to it wakes it.

    def _power_off(self, name, reason):
        self._driver.power_off(name)
        self._see_off(name, reason)

    def _see_off(self, name, reason):
        return not self._driver.is_on(name) and self._move(
            name, (db_energy.SLEEPING,), db_energy.ASLEEP, reason)

    def _asleep(self, state, host):
        """See whether somebody else needs it or has woken it."""
        name = host.name
        if host.is_operators:
            return
        if not host.disabled:
            self.wake(name, 'its compute service was enabled')
        elif (self.now() - state.since < _seconds(_WATCH_S)
              and not self._fleet.is_empty(host)):
            self.wake(name, 'a server has come to it')
        elif self._reports(state, host) and self._driver.is_on(name):
            self.wake(name, 'somebody else has powered it on')

    def _wake(self, state, host):
        """Power it on, and let servers come once its service reports."""
        if host.is_operators:
            self._move(host.name, (db_energy.WAKING,), db_energy.ASLEEP,
                       'an operator has disabled its service')
            return
        if self._reports(state, host):
            self._enable(host)
            self._move(host.name, (db_energy.WAKING,), db_energy.ON,
                       state.reason,
                       (self.now() - state.since).total_seconds())
            return
        if not self._driver.is_on(host.name):
            self._driver.power_on(host.name)
        self._check_boot_time(state, 'its compute service has not reported')

    def _check_boot_time(self, state, why):
        limit_s = self._options.boot_timeout_s
        if self.now() - state.since < _seconds(limit_s):
            return
        if self._move(state.host, (db_energy.WAKING,), db_energy.FAILED,
                      f'it did not boot within {limit_s} s: {why}'):
            LOG.error('Host %(host)s did not boot within %(limit)s s: '
                      '%(why)s', {'host': state.host, 'limit': limit_s,
                                  'why': why})

    def _failed(self, state, host):
        """Take it back if it came late; else try again much later."""
        if host.is_operators:
            return
        if self._reports(state, host) and self._driver.is_on(host.name):
            self.wake(host.name, 'it has booted late')
        elif self.now() - state.since >= _seconds(
                self._options.failed_retry_s):
            self._move(host.name, (db_energy.FAILED,), db_energy.ASLEEP,
                       'it had failed to boot')

    # -- parts -----------------------------------------------------------

    def _keep(self, state, host, reason):
        """Let servers come to it again."""
        self._enable(host)
        self._move(host.name, (state.state,), db_energy.ON, reason)

    def _enable(self, host):
        if host.is_ours:
            self._nova.enable_service(host.service_uuid)

    def _text(self):
        return (f'{fleet.REASON}no servers, powered off at '
                f'{self.now():%Y-%m-%dT%H:%M:%SZ}')

    def _first_seen(self, state, value):
        """What this was when the host was first seen in this state."""
        with self._lock:
            kind, since, first = self._seen.get(state.host,
                                                (None, None, None))
            if (kind, since) != (state.state, state.since):
                first = value
                self._seen[state.host] = (state.state, state.since, first)
        return first

    def _reports(self, state, host):
        """Whether its service has reported since it came into this state.

        By its reports alone, for clocks of hosts differ.
        """
        first = self._first_seen(state, host.seen_at)
        return host.up and host.seen_at != first

    def close(self):
        """Wait for nobody: what is open is for the next engine."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _seconds(number):
    return datetime.timedelta(seconds=number)
