# SPDX-License-Identifier: Apache-2.0
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
