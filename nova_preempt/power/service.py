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
"""What nova-preempt-engine has of power control, put together."""

import concurrent.futures

from oslo_log import log as logging

from nova_preempt.conf import energy
from nova_preempt.power import control
from nova_preempt.power import driver as power_driver
from nova_preempt.power import fleet
from nova_preempt.power import forecasts
from nova_preempt.power import observer
from nova_preempt.power import readings
from nova_preempt.power import requests
from nova_preempt.power import switching
from nova_preempt.power import table
from nova_preempt.power import waits

LOG = logging.getLogger(__name__)


class Power:
    """Tasks and endpoints of the engine.

    :param conf: nova.conf.CONF
    :param parts: a nova_preempt.scheduler.preemption.Preemption
    :param driver: see switching.Switcher; by default what is configured
    :ivar tasks: [(function, pause_s)], which return at once
    :ivar endpoints: for its RPC server
    """

    def __init__(self, conf, parts, driver=None):
        options = conf[energy.GROUP]
        hosts = fleet.Fleet(parts.placement, parts.get_cells)
        self.table = table.Table(options, lambda: parts.db)
        self.tasks = []
        self.endpoints = []
        self._closing = []
        if options.enabled:
            self.switcher = switching.Switcher(
                options, parts.db, parts.nova, hosts,
                driver or power_driver.Drivers(conf), parts.clock)
            self.control = control.Control(
                options, parts.db, hosts, self.switcher,
                forecasts.Forecast(options, parts.db), self._efficiencies)
            self.endpoints.append(requests.Requests(
                self.control, self.switcher, parts.db))
            self._add(self.control.step, 0)
            self._closing.append(self.switcher)
        if options.enabled or options.sources:
            self.observer = observer.Observer(
                options, parts.db, hosts,
                readings.Readings(conf, clock=parts.clock), self._idle_watts,
                waits.Waits(parts.db, parts.get_cells), parts.clock)
            self._add(self.observer.observe, options.reading_interval_s)

    def _efficiencies(self):
        """{host: FLOPS per watt}, see control.Control."""
        self.table.start()
        return {host: item.flops_per_watt
                for host, item in self.table.all().items()}

    def _idle_watts(self):
        """{host: watts}, see observer.Observer."""
        self.table.start()
        return {host: item.idle_watts for host, item
                in self.table.all().items() if item.idle_watts is not None}

    def _add(self, function, pause_s):
        background = Background(function)
        self._closing.append(background)
        self.tasks.append((background.run, pause_s))

    def close(self):
        self.table.stop()
        for item in self._closing:
            item.close()


class Background:
    """Runs something in a thread of its own, once at a time.

    Controllers and meters take their time, and the engine has other tasks.
    """

    def __init__(self, function):
        self._function = function
        self._pool = concurrent.futures.ThreadPoolExecutor(
            1, thread_name_prefix='energy')
        self._running = None

    def run(self):
        """Begin, unless it is still going on."""
        if self._running is None or self._running.done():
            self._running = self._pool.submit(self._run)

    def _run(self):
        try:
            self._function()
        except Exception:
            LOG.exception('%s failed; it is tried again.',
                          self._function.__qualname__)

    def close(self):
        """Wait for nobody."""
        self._pool.shutdown(wait=False, cancel_futures=True)
