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
"""The forecast that is configured, and what it is told."""

import datetime

import stevedore

from nova_preempt import exceptions
from nova_preempt.core.energy import forecast as core
from nova_preempt.db import energy as db_energy
from nova_preempt.db import reservation_rows as rows

NAMESPACE = 'nova_preempt.forecast'

# Steps of which the smoothing still remembers something.
_STEPS = 30
_HOUR = datetime.timedelta(hours=1)
_WEEK = datetime.timedelta(weeks=1)


def parameters(options):
    """A core Parameters.

    :param options: [energy] of the configuration
    """
    return core.Parameters(
        step_s=options.switch_interval_s, alpha=options.forecast_alpha,
        window_s=options.forecast_window_s, weeks=options.forecast_weeks)


def load(options):
    """The forecast that is configured, a core Forecast.

    :raises InvalidConfiguration: there is no such forecast
    """
    manager = stevedore.ExtensionManager(NAMESPACE)
    if options.forecast not in manager.names():
        raise exceptions.InvalidConfiguration(
            f'[energy]forecast is {options.forecast!r}; known are: '
            + ', '.join(sorted(manager.names())))
    return manager[options.forecast].plugin


class Forecast:
    """How many hosts will have servers.

    :param options: [energy] of the configuration
    :param database: a db.Database
    :raises InvalidConfiguration: there is no such forecast
    """

    def __init__(self, options, database):
        self._db = database
        self._parameters = parameters(options)
        self._function = load(options)

    def hosts(self, now):
        """A number of hosts, or a part of one.

        :param now: naive and in UTC
        """
        return self._function(self._history(now), rows.to_s(now),
                              self._parameters)

    def _history(self, now):
        """The last hours, and the same hour of earlier weeks.

        No forecast looks at more, and weeks of minutes are many.
        """
        recent_s = max(self._parameters.window_s,
                       _STEPS * self._parameters.step_s)
        begins = [(now - week * _WEEK, now - week * _WEEK + _HOUR)
                  for week in range(self._parameters.weeks, 0, -1)]
        begins.append((now - datetime.timedelta(seconds=recent_s),
                       now + datetime.timedelta(seconds=1)))
        return [core.Load(rows.to_s(sample.sampled_at), sample.hosts_busy)
                for since, until in begins
                for sample in db_energy.get_samples(self._db, since, until)]
