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
"""What [energy] says, as the core wants it."""

from nova_preempt import plugins
from nova_preempt.core.energy import observed
from nova_preempt.core.energy import power

NAMESPACE = 'nova_preempt.forecast'


def load_forecast(options):
    """The forecast that is configured, a core Forecast.

    :param options: [energy] of the configuration
    :raises InvalidConfiguration: there is no such forecast
    """
    return plugins.load(NAMESPACE, options.forecast, '[energy]forecast is')


def get_options(options, forecast_function, step_s=10):
    """The core's observed.Options, anew: they change while it runs.

    :param options: [energy] of the configuration
    :param forecast_function: see load_forecast()
    :param step_s: how long after one step the next one follows
    """
    return observed.Options(
        power.Policy(options.idle_intervals, options.spare_hosts,
                     options.minimum_hosts),
        options.boot_timeout_s, forecast_function,
        options.switch_interval_s, options.max_wakes_per_minute,
        options.max_sleeps_per_minute, options.demand_wakes,
        options.demand_wait_s, tuple(options.excluded_hosts),
        options.minimum_hosts_per_aggregate, step_s)
