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
"""Cyborg's device profiles, as far as questions about flavors need them."""

from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import exception
from nova.accelerator import cyborg

from nova_preempt.cloud import nova_api


class DeviceProfiles:
    """Asks Cyborg with the credentials in [preemption].

    Who asks us has left his token with our API: nobody acts in his name.
    """

    def __init__(self, conf):
        self._conf = conf
        self._auth = None

    def get_groups(self, name):
        """The RequestGroups of what a profile asks for, as nova-api has them.

        :raises NovaException: Cyborg cannot be asked, or has no such profile
        """
        if not nova_api.NovaAPI.is_configured(self._conf):
            raise exception.DeviceProfileError(
                name=name, msg='Cyborg is asked with the credentials in '
                               '[preemption], which has none.')
        try:
            if self._auth is None:
                self._auth = nova_api.load_auth(self._conf)
            context = nova_context.get_admin_context()
            context.user_auth_plugin = self._auth
            return cyborg.get_device_profile_request_groups(context, name)
        except ks_exc.ClientException as exc:
            raise exception.DeviceProfileError(
                name=name, msg=str(exc)) from exc
