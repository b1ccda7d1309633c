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

"""Make errors of the warnings that code of nova_preempt causes.

Python runs this at its start when the directory is on PYTHONPATH, as "make"
puts it for tests. PYTHONWARNINGS would not do: it takes whole module names
only, not a package. Others may warn as much as they like.
"""

import warnings

_simplefilter = warnings.simplefilter


def simplefilter(action, *args, **kwargs):
    """Keep our filter above the one that Nova's test fixtures install."""
    _simplefilter(action, *args, **kwargs)
    if action == 'once':
        strict()


def strict():
    """Raise what is attributed to a module of ours."""
    warnings.filterwarnings('error', module=r'nova_preempt(\.|$)')


strict()
warnings.simplefilter = simplefilter
