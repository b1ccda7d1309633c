# SPDX-License-Identifier: Apache-2.0
"""Builds the core's energy options from [energy]."""

from nova_preempt import plugins
from nova_preempt.core.energy import energy_observation
from nova_preempt.core.energy import power_plan

NAMESPACE = 'nova_preempt.forecast'


def load_forecast(options):
    """Return the forecast that is configured, a core Forecast.

    :param options: [energy] of the configuration
    :raises InvalidConfiguration: it does not exist
    """
    return plugins.load(NAMESPACE, options.forecast, '[energy]forecast is')


def get_options(options, forecast_function, step_s=10):
    """Return a core energy_observation.Options; options may change any time.

    :param options: [energy] of the configuration
    :param forecast_function: see load_forecast()
    :param step_s: the time between two steps
    """
    return energy_observation.Options(
        power_plan.PowerPolicy(options.idle_intervals, options.spare_hosts,
                               options.minimum_hosts),
        options.boot_timeout_s, forecast_function,
        options.switch_interval_s, options.max_wakes_per_minute,
        options.max_sleeps_per_minute, options.demand_wakes,
        options.demand_wait_s, tuple(options.excluded_hosts),
        options.minimum_hosts_per_aggregate, step_s)
