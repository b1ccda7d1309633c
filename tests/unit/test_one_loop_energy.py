# SPDX-License-Identifier: Apache-2.0
"""The engine and the simulator power the same hosts at the same time."""

import dataclasses
import datetime
import re
from unittest import mock

import fixtures

from nova_preempt.core.controller_step import Step
from nova_preempt.core.energy import energy_controller
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy import power_plan
from nova_preempt.core.energy import power_steps
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import calendar_changes
from nova_preempt.db import reservation_rows as rows
from nova_preempt.db import sleeping_host_claims
from nova_preempt.power import energy_loop
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator.traces import trace_model
from tests.unit.power import world
from tests.unit.simulator import small
from tests.unit.simulator import test_simulated_reservations

NAMES = ('h-1', 'h-2', 'h-3', 'h-4')


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Events of four hosts; times are in seconds.

    :param requests: (when, id, for how long) of servers that fill a host
    :param reserved: (when it begins, when it ends) of a host
    :param needed: (from, until, how many hosts) of the forecast
    """

    boot_s: int = 10
    requests: tuple = ()
    reserved: tuple = ()
    needed: tuple = (0, 0, 0)
    until_s: int = 2000
    max_wakes: int = 10
    max_sleeps: int = 10
    boot_timeout_s: int = 900

    def forecast(self, at_s):
        since_s, until_s, hosts = self.needed
        return hosts if since_s <= at_s < until_s else 0


class Slow(world.World):
    """Hosts take a time to boot."""

    def __init__(self, boot_s):
        super().__init__(*NAMES)
        self.boot_s = boot_s
        self._powered_at = {}

    def power_on(self, name):
        super().power_on(name)
        self._powered_at[name] = self.now

    def pass_time(self, seconds):
        now = self.now + datetime.timedelta(seconds=seconds)
        self.hanging = {
            name for name, at in self._powered_at.items()
            if now - at < datetime.timedelta(seconds=self.boot_s)}
        super().pass_time(seconds)


class OneLoopTestCase(world.WorldTestCase):

    def simulate(self, scenario):
        """[(seconds, state, host, why)] of a simulation."""
        cloud = dataclasses.replace(
            small.cloud(4, spread=False), delays=dataclasses.replace(
                small.DELAYS, boot=delays.Delay('constant:0'),
                power_on=delays.Delay(f'constant:{scenario.boot_s}'),
                power_off=delays.Delay('constant:0')))
        options = energy_observation.Options(
            power_plan.PowerPolicy(idle_intervals=2), scenario.boot_timeout_s,
            lambda history, now_s, step_s: scenario.forecast(now_s),
            switch_interval_s=60,
            max_wakes_per_minute=scenario.max_wakes,
            max_sleeps_per_minute=scenario.max_sleeps)
        records = []
        simulation = run.Simulation(cloud, small.options(
            power=options,
            reservations=test_simulated_reservations.RESERVATIONS),
            0, records.append)
        trace = [small.boot(at_s, id, 4, for_s=for_s)
                 for at_s, id, for_s in scenario.requests]
        if scenario.reserved:
            trace.append(trace_model.Reserve(0, 'r', 1, *scenario.reserved))
        simulation.run(sorted(trace, key=lambda event: event.at_us),
                       scenario.until_s * run.SECOND)
        self.reserved = [host for item in records
                         if item['event'] == 'reservation granted'
                         for host in item['on']]
        return sorted_events(
            (item['t'], item['event'], item['host'], item.get('why', ''))
            for item in records
            if 'host' in item and item['event'] in power_steps.STATES)

    def serve(self, scenario):
        """Run the scenario with the engine; return its events."""
        self.set(idle_intervals=2, switch_interval_s=60,
                 max_wakes_per_minute=scenario.max_wakes,
                 max_sleeps_per_minute=scenario.max_sleeps,
                 boot_timeout_s=scenario.boot_timeout_s)
        self.start(Slow(scenario.boot_s))
        began = self.world.now
        self.forecast = lambda now: scenario.forecast(
            (self.world.now - began).total_seconds())
        self.requests = energy_loop.PowerEndpoint(
            self.control, lambda: False)
        if scenario.reserved:
            self.reserve(*scenario.reserved)
        found = []
        waiting, running = {}, {}
        for now_s in range(0, scenario.until_s + 1, 10):
            said = len(self.logger.output)
            for name, end_s in running.items():
                if end_s == now_s:
                    self.world.change(name, servers=0)
            self.tick(10 if now_s else 0)
            self.place(waiting, running, now_s)
            for at_s, id, for_s in scenario.requests:
                if at_s == now_s:
                    waiting[id] = for_s
                    self.ask(id)
            found += [
                (float(now_s), state, host, why) for host, state, why
                in re.findall(r'Host (\S+) is (\w+): (.*)',
                              self.logger.output[said:])]
        return sorted_events(found)

    def ask(self, id):
        """Wake hosts as a scheduler does for a server that fits nowhere."""
        self.requests.wake(None, id, 1, dict.fromkeys(self.states(), 1))

    def place(self, waiting, running, now_s):
        """And once the hosts are there."""
        kept = {item.request: item.host for item in sleeping_host_claims.get(
            self.db, datetime.datetime(2000, 1, 1))}
        for id in list(waiting):
            host = kept.get(id)
            if host and host not in self.states():
                sleeping_host_claims.release(self.db, id)
                self.world.change(host, servers=1)
                running[host] = now_s + waiting.pop(id)

    def reserve(self, start_s, end_s):
        start, end = (self.world.naive() + datetime.timedelta(seconds=each)
                      for each in (start_s, end_s))
        with self.db.writer() as session:
            calendar_changes.raise_generation(session, reservations=('r',))
            rows.insert(session, reservation_model.Reservation(
                uuid='r', project_id='p', quantity=1,
                duration_s=end_s - start_s, window_start=start,
                end_action='delete', before_end_s=0, start_at=start,
                end_at=end, created_at=start, updated_at=start,
                hosts=tuple(reservation_model.Assignment(host, start, end)
                            for host in self.reserved)))


def sorted_events(events):
    """['T STATE HOSTS: WHY'], in order of time, and then of states."""
    hosts = {}
    for at_s, state, host, why in events:
        hosts.setdefault((at_s, _ORDER.index(state), why), []).append(host)
    return [f'{at_s:g} {_ORDER[state]} {" ".join(sorted(names))}: {why}'
            for (at_s, state, why), names in sorted(hosts.items())]


#: As one follows the other, of those that do at once.
_ORDER = ('waking', 'on', 'failed', 'emptying', 'sleeping', 'asleep')
_IDLE = [
    '60 emptying h-1 h-2 h-3 h-4: 0 hosts are needed',
    '80 sleeping h-1 h-2 h-3 h-4: 0 hosts are needed',
    '80 asleep h-1 h-2 h-3 h-4: 0 hosts are needed']
_CYCLED = ('it is power-cycled, since its compute service has not '
           'reported within 300 s')
_NOT_BOOTED = ('it did not boot within 300 s: its compute service has not '
               'reported')


class TestOneLoop(OneLoopTestCase):
    """The events equal those recorded of the engine."""

    def check(self, scenario, expected):
        self.assertEqual(expected, self.simulate(scenario))
        self.assertEqual(expected, self.serve(scenario))

    def test_forecast(self):
        self.check(Scenario(needed=(600, 900, 2), until_s=1100), [
            *_IDLE,
            '600 waking h-1 h-2: 2 hosts are needed',
            '610 on h-1 h-2: 2 hosts are needed',
            '900 emptying h-1 h-2: 0 hosts are needed',
            '920 sleeping h-1 h-2: 0 hosts are needed',
            '920 asleep h-1 h-2: 0 hosts are needed'])

    def test_requests_that_find_no_host(self):
        self.check(Scenario(requests=((600, 'one', 300), (610, 'two', 300)),
                            until_s=1200), [
            *_IDLE,
            '600 waking h-1: a request finds no other host',
            '610 waking h-2: a request finds no other host',
            '620 on h-1: a request finds no other host',
            '630 on h-2: a request finds no other host',
            '1020 emptying h-1 h-2: 0 hosts are needed',
            '1040 sleeping h-1 h-2: 0 hosts are needed',
            '1040 asleep h-1 h-2: 0 hosts are needed'])

    def test_reservation(self):
        self.check(Scenario(reserved=(1800, 2400), until_s=2500), [
            *_IDLE,
            '1480 waking h-1: a reservation of the host begins',
            '1490 on h-1: a reservation of the host begins',
            '2400 emptying h-1: 0 hosts are needed',
            '2420 sleeping h-1: 0 hosts are needed',
            '2420 asleep h-1: 0 hosts are needed'])

    def test_limits_of_a_minute(self):
        self.check(Scenario(
            boot_s=170, max_wakes=1, max_sleeps=1, until_s=900, requests=(
                (600, '1', 900), (600, '2', 900), (600, '3', 900))), [
            *(f'{120 * number + in_s} {state} h-{number + 1}: '
              '0 hosts are needed' for number in range(4)
              for in_s, state in ((60, 'emptying'), (80, 'sleeping'),
                                  (80, 'asleep'))),
            '600 waking h-1: a request finds no other host',
            '660 waking h-2: a request finds no other host',
            '720 waking h-3: a request finds no other host',
            '780 on h-1: a request finds no other host',
            '830 on h-2: a request finds no other host',
            '890 on h-3: a request finds no other host'])

    def test_hosts_that_do_not_boot(self):
        self.useFixture(fixtures.MockPatchObject(
            power_steps, 'FAILED_RETRY_S', 900))
        self.check(Scenario(
            boot_s=80000, needed=(600, 10000, 2), boot_timeout_s=300,
            until_s=2160), [
            *_IDLE,
            '600 waking h-1 h-2: 2 hosts are needed',
            f'900 waking h-1 h-2: {_CYCLED}',
            f'1210 failed h-1 h-2: {_NOT_BOOTED}',
            '1220 waking h-3 h-4: 2 hosts are needed',
            f'1520 waking h-3 h-4: {_CYCLED}',
            f'1830 failed h-3 h-4: {_NOT_BOOTED}',
            '2160 waking h-1 h-2: its boot is retried'])

    def test_a_controller_that_waits_a_minute_longer(self):
        step = energy_controller.step

        def wait(observed, memory, now_us):
            began_us.append(now_us)
            if now_us < began_us[0] + 60 * run.SECOND:
                return Step((), memory, now_us + 10 * run.SECOND)
            return step(observed, memory, now_us)

        later = [re.sub(r'^\d+', lambda found: str(60 + int(found[0])), line)
                 for line in _IDLE]
        for run_it in (self.simulate, self.serve):
            began_us = []
            with mock.patch.object(energy_controller, 'step', wait):
                self.assertEqual(later, run_it(Scenario(until_s=200)))
