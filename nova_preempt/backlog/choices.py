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
"""The hosts that were chosen for boots, from the engine to the scheduler."""

import datetime
import secrets

from oslo_db import exception as db_exc
from oslo_log import log as logging

from nova_preempt.backlog import options as backlog_options
from nova_preempt.core.backlog import chosen
from nova_preempt.db import chosen_hosts

LOG = logging.getLogger(__name__)


class Choices:
    """Writes hosts down under secrets.

    :param options: [backlog] of the configuration
    :param database: a nova_preempt.db.Database
    :param make_secret: returns a str that nobody can guess
    """

    def __init__(self, options, database, make_secret=secrets.token_urlsafe):
        self._options = options
        self._database = database
        self._make_secret = make_secret

    def hints(self, request, boot, hosts):
        """The scheduler hints with which a boot gets these hosts.

        None where none were chosen, or they cannot be written down: Nova
        chooses then.

        :param hosts: {host: how many servers}
        """
        if not hosts:
            return {}
        secret = self._make_secret()
        lasts = backlog_options.lifecycle(self._options).undecided_s
        choice = chosen.Choice(
            request.project_id, request.user_id, boot.flavor_id, boot.count,
            request.uuid, boot.number, hosts,
            boot.asked_at + datetime.timedelta(seconds=lasts))
        try:
            chosen_hosts.keep(self._database, secret, choice)
        except db_exc.DBError as exc:
            LOG.warning('Nova chooses hosts for request %(uuid)s: what was '
                        'chosen cannot be written down: %(exc)s',
                        {'uuid': request.uuid, 'exc': exc})
            return {}
        return {chosen.HINT: secret}
