# SPDX-License-Identifier: Apache-2.0
"""A connection of the SDK with the token of the user of a request."""

from django.conf import settings
from horizon.utils import memoized
from keystoneauth1 import discover
from keystoneauth1 import plugin
from keystoneauth1 import session
import openstack
from openstack_auth import utils as auth_utils
from openstack_dashboard.api import base
import requests

from nova_preempt import sdk
from nova_preempt_dashboard import api
from nova_preempt_dashboard import http_adapter

#: How long a call may take, in seconds: longer than the Preemption API waits
#: for the engine and the scheduler by default.
TIMEOUT_S = 40


class _UserAuth(plugin.BaseAuthPlugin):
    """The token and the catalog that Horizon has of its user."""

    def __init__(self, request):
        super().__init__()
        self._request = request

    def get_token(self, session, **kwargs):
        return self._request.user.token.id

    def get_project_id(self, session, **kwargs):
        return self._request.user.project_id

    def get_endpoint_data(self, session, *, endpoint_override=None,
                          discover_versions=True, service_type=None,
                          skip_discovery=False, version=None,
                          min_version=None, max_version=None, **kwargs):
        if endpoint_override:
            return super().get_endpoint_data(
                session, endpoint_override=endpoint_override,
                discover_versions=discover_versions)
        if version:
            min_version = version
            max_version = f'{str(version).partition(".")[0]}.latest'
        found = discover.EndpointData(
            catalog_url=base.url_for(self._request, service_type),
            service_type=service_type)
        return found if skip_discovery else found.get_versioned_data(
            session, cache=self._discovery_cache,
            discover_versions=discover_versions, min_version=min_version,
            max_version=max_version)

    def get_endpoint(self, session, *, service_type=None, **kwargs):
        data = self.get_endpoint_data(
            session, service_type=service_type,
            **{'discover_versions': False, **kwargs})
        return data.url if data else None


@memoized.memoized
def preemption(request):
    """Return the api.Api of the user of a request."""
    http, adapter = requests.Session(), http_adapter.Adapter()
    http.mount('http://', adapter)
    http.mount('https://', adapter)
    verify = not settings.OPENSTACK_SSL_NO_VERIFY and (
        settings.OPENSTACK_SSL_CACERT or True)
    conn = openstack.connection.Connection(
        session=session.Session(
            auth=_UserAuth(request), verify=verify,
            session=http, timeout=getattr(
                settings, 'PREEMPTION_TIMEOUT_S', TIMEOUT_S),
            original_ip=auth_utils.get_client_ip(request)),
        region_name=request.user.services_region, app_name='horizon')
    return api.Api(conn, sdk.add_to,
                   getattr(settings, 'PREEMPTION_MARKS', ()))
