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
"""Ladders of flavors, for who wants them: they need more than the rest.

What decides about them is imported here alone, and only where [backlog]ladders
is true.
"""

from nova_preempt import exceptions


def load(options):
    """Load nova_preempt.core.backlog.ladders, None where there are none.

    :param options: [backlog] of the configuration
    :raises InvalidConfiguration: what they need is not installed
    """
    if not options.ladders:
        return None
    try:
        from nova_preempt.core.backlog import ladders
    except ImportError as exc:
        raise exceptions.InvalidConfiguration(
            f'[backlog]ladders is true, but {exc.name} is not installed: it '
            'comes with nova-preempt[classes].') from exc
    return ladders
