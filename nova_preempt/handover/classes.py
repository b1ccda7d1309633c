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
"""How classes of service are found, where there are any.

They are a plugin that may not be installed, and that is loaded only where
[classes]enabled is true.
"""

import stevedore

from nova_preempt import exceptions
from nova_preempt.conf import classes as conf_classes
from nova_preempt.core import actions

GROUP = 'nova_preempt.classes'
NAME = 'qos'


def load(conf):
    """The plugin, see nova_preempt.classes.plugin; None if it is off.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :raises InvalidConfiguration: it is not installed, or its options make no
        sense
    """
    if not conf[conf_classes.GROUP].enabled:
        return None
    if why := actions.why_no_classes(conf.preemption.actions):
        raise exceptions.InvalidConfiguration(why)
    try:
        return stevedore.DriverManager(
            GROUP, NAME, on_load_failure_callback=_cannot_load,
            invoke_on_load=True, invoke_args=(conf,)).driver
    except (ImportError, stevedore.exception.NoMatches) as exc:
        raise exceptions.InvalidConfiguration(
            f'[{conf_classes.GROUP}]enabled is true, but its package is not '
            f'installed: {exc}') from exc
    except ValueError as exc:
        raise exceptions.InvalidConfiguration(str(exc)) from exc


def _cannot_load(_manager, _entry_point, exc):
    raise exc
