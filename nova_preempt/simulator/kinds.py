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
"""What the same servers of a trace have in common, worked out once."""

from __future__ import annotations

from typing import Any

from nova_preempt.core import actions
from nova_preempt.core.model import Request
from nova_preempt.simulator import servers
from nova_preempt.simulator import setting
from nova_preempt.simulator.traces.model import Boot


class SimulationError(Exception):
    """A trace asks for what the setting does not have."""


class Kinds:
    """Those of a simulation."""

    def __init__(self, setup: setting.Setting,
                 options: setting.Options) -> None:
        self._setting = setup
        self._classes = options.classes
        self._kinds: dict[Any, servers.Kind] = {}

    def of(self, boot: Boot) -> servers.Kind:
        """Return that of a server.

        :raises SimulationError: its flavor is not known
        """
        resources = boot.resources
        key = (boot.flavor, boot.class_name,
               resources and tuple(sorted(resources.items())))
        found = self._kinds.get(key)
        if found is not None:
            return found
        terms = self._setting.classes.get(boot.class_name)
        if resources is None:
            flavor = self._setting.flavors.get(boot.flavor)
            if flavor is None:
                known = ', '.join(sorted(self._setting.flavors)) or 'none'
                raise SimulationError(
                    f'server {boot.id} has the flavor {boot.flavor!r}, which '
                    f'is not known; there are: {known}')
            resources, terms = flavor.resources, flavor.terms or terms
        kind = servers.Kind(resources, Request.of(resources),
                            self._of_class(terms))
        self._kinds[key] = kind
        return kind

    def _of_class(self, terms: setting.Terms | None) -> setting.Terms | None:
        """Who is of a class that there is comes back, as in a cloud."""
        known = self._classes is not None and terms is not None and (
            self._classes.table.classes.find(terms.class_name) is not None)
        return terms and actions.of_class(
            terms, terms.class_name if known else '')
