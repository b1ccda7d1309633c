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
"""Acting as the users who have left requests."""

from oslo_log import log as logging

from nova_preempt.cloud import nova_api
from nova_preempt.cloud import trusts as api
from nova_preempt.cloud import user_nova
from nova_preempt.core.backlog import model

LOG = logging.getLogger(__name__)


class Users:
    """Gives out Nova's API as a user.

    :param conf: with [preemption] and [backlog]
    :param trusts: a nova_preempt.cloud.trusts.Trusts
    """

    def __init__(self, conf, trusts, make_nova=user_nova.UserNova):
        self._conf = conf
        self._trusts = trusts
        self._make_nova = make_nova

    def nova(self, request):
        """A user_nova.UserNova of who has left the request.

        :raises TrustGone: the user may not do that any more
        :raises KeystoneError, NovaError: nobody can be asked
        """
        found = self._make_nova(
            self._trusts.session(request.trust_id), self._conf,
            self._conf.backlog.ask_timeout_s)
        found.check()
        return found

    def delete(self, request, uuids):
        """Delete servers that nobody needs; what fails is tried again."""
        if not uuids:
            return
        try:
            nova = self.nova(request)
            for uuid in uuids:
                nova.delete(uuid)
        except api.TrustGone as exc:
            LOG.warning(
                'Servers %(servers)s of request %(uuid)s are not needed, and '
                'cannot be deleted in the name of user %(user)s: %(exc)s',
                {'servers': ', '.join(uuids), 'uuid': request.uuid,
                 'user': request.user_id, 'exc': exc})
        except (api.KeystoneError, nova_api.NovaError) as exc:
            LOG.warning(
                'Servers %(servers)s of request %(uuid)s cannot be deleted '
                'yet: %(exc)s', {'servers': ', '.join(uuids),
                                 'uuid': request.uuid, 'exc': exc})

    def forget(self, request):
        """Delete the trust of a request, and a server group without servers.

        :returns: whether it is gone
        """
        try:
            self._delete_group(request)
            self._trusts.delete(request.trust_id)
        except (api.KeystoneError, nova_api.NovaError) as exc:
            LOG.warning('The trust of request %(uuid)s cannot be deleted yet: '
                        '%(exc)s', {'uuid': request.uuid, 'exc': exc})
            return False
        return True

    def _delete_group(self, request):
        if not model.has_group(request) or any(
                server.state != model.GONE for server in request.servers):
            return
        try:
            self.nova(request).delete_group(model.group_name(request))
        except api.TrustGone as exc:
            LOG.info('The server group of request %(uuid)s stays: %(exc)s',
                     {'uuid': request.uuid, 'exc': exc})
