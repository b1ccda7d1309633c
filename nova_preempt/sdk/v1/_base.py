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
"""What all resources have in common."""

from keystoneauth1 import discover
from openstack import exceptions
from openstack import resource
from openstack import utils

from nova_preempt import segments


def flag(value):
    """A boolean as the API takes it in a query."""
    return str(value).lower() if isinstance(value, bool) else value


class Resource(resource.Resource):
    """A resource of the Preemption API.

    What is given for a request is sent as it is named, so that the service
    refuses what it does not know. After that a resource has what the service
    has answered, and nothing else.

    _max_microversion is the version that brought the resource, or has added
    to it; _least_microversion is then the one that brought it.
    """

    _least_microversion = None

    _allow_unknown_attrs_in_body = True
    commit_method = 'PATCH'
    # Without changes the service is asked, too, and says what is missing.
    allow_empty_commit = True
    #: What comes after the id in the path.
    path_end = ''

    def answer(self):
        """What the service has said of it: JSON, as a dict."""
        return dict(self._body.attributes)

    def _ask(self, session, path, body):
        """Post a question; this becomes the answer."""
        self._translate_response(session.post(
            path, json=body, microversion=self._get_microversion(session)))
        return self

    @classmethod
    def _get_microversion(cls, session, action=None):
        """The microversion to ask with.

        :param action: what for, which older releases of openstacksdk tell
        :raises NotSupported: the service, or the default_microversion that
            is configured, is too old
        """
        latest = cls._max_microversion
        needed = cls._least_microversion or latest
        version = (session.default_microversion or
                   utils.maximum_supported_microversion(session, latest) or
                   latest)
        if (discover.normalize_version_number(version) <
                discover.normalize_version_number(needed)):
            raise exceptions.NotSupported(
                f'{cls.__name__} needs version {needed} of the Preemption '
                f'API, and not {version}.')
        return version

    @classmethod
    def _get_next_link(cls, uri, response, data, marker, limit,
                       total_yielded):
        # From where this page came: behind a proxy the service may not know
        # under which address that is.
        if data.get(f'{cls.resources_key}_links'):
            return uri, {'marker': marker, 'limit': limit}
        return None, {}

    def _prepare_request(self, requires_id=None, *, base_path=None,
                         **values):
        base_path = base_path or self.base_path
        if self.requires_id and requires_id is not False:
            if self.id is None:
                raise exceptions.InvalidRequest(
                    f'Which {type(self).__name__} is meant?')
            # Names of hosts may be unfit for a path.
            try:
                name = segments.segment(self.id)
            except segments.NotASegment as exc:
                raise exceptions.InvalidRequest(str(exc)) from None
            base_path = f'{base_path}/{name.replace("%", "%%")}{self.path_end}'
        return super()._prepare_request(
            requires_id=False, base_path=base_path, **values)

    def _translate_response(self, response, *args, **values):
        if response.status_code < 400 and response.content:
            # What was asked is no part of the answer.
            for known in (self._body.attributes,
                          self._unknown_attrs_in_body):
                known.clear()
            dict.clear(self)
        super()._translate_response(response, *args, **values)


class Single(Resource):
    """A resource of which there is one."""

    requires_id = False
    allow_fetch = True
