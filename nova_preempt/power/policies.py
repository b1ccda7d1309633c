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

from nova_preempt.core.energy import power
from nova_preempt.core.energy import steps


def policy(options, minimum_of=None, max_wakes=None, max_sleeps=None):
    """A core Policy.

    :param options: [energy] of the configuration
    :param minimum_of: see core.energy.power.Policy, as are the others
    """
    return power.Policy(
        idle_intervals=options.idle_intervals, spare=options.spare_hosts,
        minimum=options.minimum_hosts, minimum_of=minimum_of or {},
        max_wakes=max_wakes, max_sleeps=max_sleeps)


def limits(options):
    """The Limits of the steps of a host."""
    return steps.Limits(
        options.empty_checks_s, options.power_off_timeout_s,
        options.power_switch_timeout_s, options.boot_timeout_s,
        options.failed_retry_s, options.boot_attempts)


def promised_s(options):
    """How long a host is kept for a request, which may be gone."""
    return (options.demand_wait_s
            + options.boot_attempts * options.boot_timeout_s)
