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
"""Preemptible flavors that keep out of Nova's unified limits.

The scheduler claims what the size of the flavor says all the same.
"""

from nova_preempt.cloud import extra_specs as specs
from nova_preempt.core import quotas


def restore(spec_obj, classes):
    """Let a request ask for what its preemptible flavor has set to 0.

    :param spec_obj: a nova.objects.RequestSpec, whose flavor is replaced
    :param classes: the resource classes that this is done for
    """
    if not classes:
        return
    flavor = spec_obj.flavor
    extra_specs = (flavor.extra_specs if 'extra_specs' in flavor
                   else None) or {}
    zeroed = quotas.zeroed(extra_specs, classes,
                           specs.flavor_is_preemptible(extra_specs))
    if not zeroed:
        return
    # The server keeps its flavor as it is.
    spec_obj.flavor = flavor.obj_clone()
    spec_obj.flavor.extra_specs = {
        key: value for key, value in extra_specs.items()
        if key not in zeroed}
