# SPDX-License-Identifier: Apache-2.0
"""A cloud with hosts that can be switched, all in memory but our database."""

import dataclasses
import datetime
import functools

from nova_preempt import db
from nova_preempt.cloud import host_records
from nova_preempt.conf import energy as conf_energy
from nova_preempt.core.energy import power_steps
from nova_preempt.power import compute_hosts
from nova_preempt.power import energy_loop
from nova_preempt.power import energy_options
from nova_preempt.power import power_errors
from nova_preempt.power import power_switching
from tests import tables
from tests.unit.power import base


class Crash(BaseException):
    """The process is gone."""


class World:
    """Hosts as Nova, Placement and their controllers report them.

    It is the Fleet, the NovaAPI and the Driver of a Switcher.

    :ivar crash_in: after so many things that are done the process dies,
        before or after the next, None for never
    """

    def __init__(self, *names, vcpus=4):
        self.now = base.NOW
        self.elapsed_s = 0.0
        self.hosts = {
            name: host_records.ComputeHost(
                name=name, host=name, cell_uuid='c', service_uuid=name,
                provider_uuid=name, up=True, seen_at=self.naive(),
                disabled=False, disabled_reason='', vcpus=vcpus,
                vcpus_used=0, servers=0, aggregates=frozenset())
            for name in names}
        self.on = dict.fromkeys(names, True)
        self.coming = set()        # hosts with a server that only
        self.broken = set()        # Placement knows; hosts that never boot
        self.minimum_of = {}
        self.calls = []
        self.looks = []
        self.leads = True
        self.away = set()          # hosts with dead controllers
        self.unasked = set()       # hosts that cannot be asked to shut down
        self.stubborn = set()      # hosts that do not shut down,
        self.welded = set()        # and that nothing switches off
        self.hanging = set()       # that boot and never report
        self.crash_in = None
        self.dark = set()          # hosts whose cell is away

    def naive(self):
        return self.now.replace(tzinfo=None)

    def clock(self):
        return self.now

    def monotonic(self):
        return self.elapsed_s

    def set_clock(self, seconds):
        """Turn the clock of this machine on, or back; no time passes."""
        self.now += datetime.timedelta(seconds=seconds)

    def change(self, name, **values):
        self.hosts[name] = dataclasses.replace(self.hosts[name], **values)

    def _do(self, *call):
        self._come_to(call)
        self.calls.append(call)

    def _come_to(self, what):
        if self.crash_in is not None:
            if self.crash_in <= 0:
                raise Crash(what)
            self.crash_in -= 1

    # -- time ------------------------------------------------------------

    def pass_time(self, seconds):
        """Hosts that are on report, unless they are broken."""
        self.now += datetime.timedelta(seconds=seconds)
        self.elapsed_s += seconds
        for name, on in self.on.items():
            if on and not {name} & (self.broken | self.hanging):
                self.change(name, up=True, seen_at=self.naive())
            elif self.naive() - self.hosts[name].seen_at > (
                    datetime.timedelta(seconds=60)):
                self.change(name, up=False)

    # -- a Fleet ---------------------------------------------------------

    def read(self, max_age_s=0, partly=False):
        if self.dark and not partly:
            raise compute_hosts.CellsUnreadable('away')
        return {name: host for name, host in self.hosts.items()
                if name not in self.dark}

    def reread(self, host):
        return self.hosts[host.name]

    def is_empty(self, host):
        return power_steps.is_empty(self.occupants(host))

    def occupants(self, host):
        self.looks.append(host.name)
        return power_steps.Occupants(
            frozenset(['coming'] if host.name in self.coming else []),
            frozenset(['running'] if self.hosts[host.name].servers else []))

    def tokens(self):
        return {name: [(name, name in self.coming)] for name in self.hosts}

    def minimums(self, default):
        return self.minimum_of

    # -- a NovaAPI -------------------------------------------------------

    def disable_service(self, name, reason):
        self._do('disable', name)
        assert not self.hosts[name].is_operators, name
        self.change(name, disabled=True, disabled_reason=reason)
        self._come_to('disabled')

    def enable_service(self, name):
        self._do('enable', name)
        assert not self.hosts[name].is_operators, name
        self.change(name, disabled=False, disabled_reason='')
        self._come_to('enabled')

    # -- a Driver --------------------------------------------------------

    def is_on(self, name):
        self._come_to('look')
        self._reach(name)
        return self.on[name]

    def power_on(self, name):
        self._do('on', name)
        self._reach(name)
        if name in self.broken:
            raise power_errors.PowerError(name, 'it is broken')
        self.on[name] = True
        self._come_to('on')

    def shut_down(self, name):
        self._do('off', name)
        self._take_power(name)
        if name in self.unasked:
            raise power_errors.PowerError(name, 'ssh exited with status 255')
        if name in self.stubborn | self.welded:
            self.elapsed_s += power_steps.POWER_OFF_TIMEOUT_S
            raise power_errors.PowerError(
                name, 'it was not shut down within 300 s')
        self.on[name] = False
        self._come_to('off')

    def switch_off(self, name):
        self._do('cut', name)
        self._take_power(name)
        if name in self.welded:
            raise power_errors.PowerError(
                name, 'it was not powered off within 60 s')
        self.on[name] = False
        # Whatever hung does so no more.
        self.hanging.discard(name)
        self._come_to('cut')

    def _take_power(self, name):
        assert self.hosts[name].servers == 0, name
        assert self.hosts[name].is_ours, name
        assert self.leads, name
        self._reach(name)

    def _reach(self, name):
        if name in self.away:
            raise power_errors.PowerError(name, 'Unable to connect')


class WorldTestCase(base.PowerTestCase):
    """Has a database, and engines that can be started anew."""

    def setUp(self):
        super().setUp()
        self.conf.set_override(
            'connection', f'sqlite:///{self.directory}/test.sqlite',
            'preemption_database')
        self.db = db.Database(self.conf)
        tables.make(self.db)
        self.addCleanup(
            lambda: self.db.engine.dispose())
        self.set(enabled=True, spare_hosts=0, minimum_hosts=0,
                 max_sleeps_per_minute=100)

    def start(self, world, forecast=lambda now_s: 0, efficiencies=dict,
              by_history=None):
        """A new engine in this world.

        :param by_history: the core's forecast, in place of forecast
        """
        self.world = world
        self.forecast = forecast
        get_options = functools.partial(
            energy_options.get_options, self.conf[conf_energy.GROUP],
            by_history or (
                lambda _, now_s, step_s: self.forecast(now_s)), 10)
        self.switcher = power_switching.PowerSwitcher(
            get_options, self.db, world, world, world, world.clock,
            lambda: world.leads, world.monotonic)
        self.addCleanup(self.switcher.close)
        self.control = energy_loop.EnergyLoop(
            get_options, self.db, world, self.switcher, efficiencies)

    def tick(self, seconds=10):
        self.world.pass_time(seconds)
        self.control.step()
        self.switcher.wait()

    def minutes(self, number):
        for _ in range(number):
            self.tick(60)

    def states(self):
        """Return {host: state} of hosts that are not on."""
        return {name: item.state for name, item
                in energy_loop.energy_store.get_power(self.db).items()
                if item.state != 'on'}
