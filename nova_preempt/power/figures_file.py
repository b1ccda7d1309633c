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
"""[energy]figures_file: what hosts deliver and draw, by hand."""

import math

from nova_preempt.core.energy import efficiency
from nova_preempt.power import errors
from nova_preempt.power import hosts_file

_KEYS = ('flops', 'watts', 'idle_watts')

_SCHEMA = {
    'type': 'object',
    'additionalProperties': {
        'type': 'object', 'additionalProperties': False,
        'properties': {key: {} for key in _KEYS}},
}


def load(path, max_watts=math.inf):
    """Read the file: {host: efficiency.Figures}.

    :param max_watts: that one host can draw
    :raises HostsFileError: naming the file and all that is wrong in it, by
        host, key and value
    """
    wrong = []
    found = {}
    for host, content in hosts_file.load_yaml(path, _SCHEMA).items():
        values = {key: _number(value) for key, value in content.items()}
        figures = efficiency.Figures(**values)
        wrong += [f'host {host}: {key}: {content[key]!r} {what}' for key, what
                  in efficiency.what_is_wrong(figures, max_watts).items()]
        found[host] = figures
    if wrong:
        raise errors.HostsFileError(f'{path}: ' + '; '.join(sorted(wrong)))
    return found


def _number(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
