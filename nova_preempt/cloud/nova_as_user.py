# SPDX-License-Identifier: Apache-2.0
"""Nova's API as a user: what is read and done in the user's name.

No credentials of ours: quotas, policies and key pairs are the user's.
"""

import dataclasses

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import exceptions as ks_exc
from nova import objects
from nova.scheduler import utils as nova_utils

from nova_preempt import url_segments
from nova_preempt.cloud import extra_specs as specs
from nova_preempt.cloud import nova_api
from nova_preempt.conf import preemption
from nova_preempt.core.backlog import allowed_hosts
from nova_preempt.core.backlog import backlog_model

# What is done to a server whose body did not say a version.
VERSION = '2.52'
# The last in which a policy of a server group is one of a list.
_GROUPS = '2.63'
_PAGE = 1000
# Extra specs with the flavor.
_FLAVORS = '2.61'
# The last with images, and one with key pairs as they are now.
_IMAGES = '2.35'
_KEY_PAIRS = '2.10'

_OK = (200, 202, 204)


@dataclasses.dataclass(frozen=True)
class Reply:
    """What Nova has answered to POST /servers.

    :ivar status: of HTTP; None if there was no answer, and nobody knows
        whether it has arrived
    :ivar text: Nova's words; what went wrong, if there was no answer
    :ivar kind: what Nova calls its error, such as "itemNotFound"; '' if the
        answer is not one of Nova
    :ivar server_uuid: of the first server that was made
    """

    status: int | None
    text: str = ''
    kind: str = ''
    server_uuid: str = ''


class ServerGroupNotCreated(Exception):
    """Nova has not made a server group; ``reply`` says why."""

    def __init__(self, reply):
        super().__init__(reply.text)
        self.reply = reply


class NotFound(Exception):
    """There is no such thing, or the user may not see it."""


class Refused(Exception):
    """Nova does not let this user ask; has Nova's words."""


class UserNova:
    """Boots, looks at and ends servers of a user.

    :param session: a keystoneauth1 Session that is the user
    :param conf: with [preemption], which says where Nova's API is
    :param timeout_s: how long an answer is waited for
    """

    def __init__(self, session, conf, timeout_s):
        self._timeout_s = timeout_s
        self._adapter = _adapter(session, conf)

    def check(self):
        """Find out where Nova is, so that what fails later is its own.

        :raises NovaError: nobody can be asked
        """
        _endpoint(self._adapter)

    def create(self, body, version):
        """Ask for servers, once.

        :param body: of POST /servers
        :param version: the microversion that it is meant for
        :returns: a Reply
        """
        try:
            # The body has passwords and user data, the answer a password.
            answer = self._call('POST', '/servers', version, json=body,
                                log=False)
        except ks_exc.ClientException as exc:
            return Reply(None, str(exc))
        if answer.status_code in _OK:
            return Reply(answer.status_code, server_uuid=_server_uuid(answer))
        return Reply(answer.status_code, *_fault(answer))

    def group(self, name):
        """The uuid of the anti-affinity group of this name, made if needed.

        :raises ServerGroupNotCreated: Nova has not made it, or nobody knows
        """
        body = {'server_group': {'name': name,
                                 'policies': ['anti-affinity']}}
        try:
            for found in self._groups(name):
                return found['id']
            answer = self._call('POST', '/os-server-groups', _GROUPS,
                                json=body)
        except (ks_exc.ClientException, nova_api.NovaError) as exc:
            raise ServerGroupNotCreated(Reply(None, str(exc))) from exc
        if answer.status_code not in _OK:
            raise ServerGroupNotCreated(
                Reply(answer.status_code, *_fault(answer)))
        return answer.json()['server_group']['id']

    def delete_group(self, name):
        """Delete it; fine if it is gone. Raises NovaError."""
        for found in self._groups(name):
            self._ask('DELETE', '/os-server-groups/'
                      + url_segments.segment(found['id']))

    def _groups(self, name):
        """Those of this name; none where Nova knows nothing of groups."""
        offset, page = 0, True
        while page:
            answer = self._ask('GET', '/os-server-groups', params={
                'limit': _PAGE, 'offset': offset})
            if answer is None:
                return
            page = answer.json()['server_groups']
            yield from (found for found in page if found['name'] == name)
            offset += len(page)

    def has_flavor(self, flavor_id):
        """Whether the user can have servers of it. Raises NovaError."""
        return self._ask(
            'GET', '/flavors/' + url_segments.segment(
                flavor_id, url_segments.DETAIL)) is not None

    def limits(self):
        """{name: number} of the absolute limits. Raises NovaError."""
        answer = self._ask('GET', '/limits')
        return answer.json()['limits']['absolute'] if answer else {}

    def delete(self, uuid):
        """Delete a server; fine if it is gone. Raises NovaError, as all."""
        self._ask('DELETE', '/servers/'
                  + url_segments.segment(uuid, url_segments.DETAIL))

    def _ask(self, method, url, **kwargs):
        """The answer, None if there is no such thing."""
        try:
            answer = self._call(method, url, VERSION, **kwargs)
        except ks_exc.ClientException as exc:
            raise nova_api.NoAnswer(f'{method} {url}: {exc}') from exc
        if answer.status_code == 404:
            return None
        if answer.status_code not in _OK:
            error = (nova_api.NoAnswer if answer.status_code >= 500
                     else nova_api.NovaError)
            raise error(
                f'{method} {url}: {answer.status_code} {_fault(answer)[0]}')
        return answer

    def _call(self, method, url, version, **kwargs):
        # NOTE: Asked once. What has arrived without an answer would make its
        # servers twice.
        return self._adapter.request(
            url, method, microversion=version, raise_exc=False,
            connect_retries=0, status_code_retries=0,
            timeout=self._timeout_s, **kwargs)


class UserLookup:
    """Looks things up as a user.

    :param conf: a ConfigOpts with [preemption], which says where Nova is
    """

    def __init__(self, conf):
        self._conf = conf
        self._adapter = None

    # All of these raise NotFound, Refused, or NovaError where nobody knows.

    def flavor(self, token, flavor_id, from_volume=False):
        """A backlog_model.Alternative.

        :param from_volume: whether its root disk is a volume
        """
        return _alternative(
            self._get(token, _FLAVORS, 'flavors', flavor_id)['flavor'],
            from_volume)

    def ladder(self, token, name, from_volume=False):
        """Return [backlog_model.Alternative], the flavors of this ladder."""
        found, marker = [], {}
        while page := self._ask(token, _FLAVORS, 'flavors', 'detail',
                                **marker)['flavors']:
            found += [_alternative(flavor, from_volume) for flavor in page
                      if specs.ladder(flavor.get('extra_specs') or {}) == name]
            marker = {'marker': page[-1]['id']}
        return found

    def image(self, token, image_id):
        """Complain if there is none."""
        self._get(token, _IMAGES, 'images', image_id)

    def key_pair(self, token, name):
        """Complain if there is none."""
        self._get(token, _KEY_PAIRS, 'os-keypairs', name, others=())

    def _get(self, token, version, kind, name, others=url_segments.DETAIL):
        try:
            return self._ask(token, version, kind,
                             url_segments.segment(str(name), others))
        except url_segments.NotASegment as exc:
            raise NotFound(str(exc)) from None

    def _ask(self, token, version, kind, name, **query):
        nova = self._own()
        # What fails there is ours, not the user's.
        endpoint = _endpoint(nova)
        try:
            return nova.get(
                f'/{kind}/{name}', endpoint_override=endpoint,
                authenticated=False, params=query,
                headers={'X-Auth-Token': token,
                         'OpenStack-API-Version': f'compute {version}'}
            ).json()
        except ks_exc.NotFound:
            raise NotFound(f'There is no such {kind}.') from None
        except (ks_exc.BadRequest, ks_exc.Forbidden) as exc:
            raise Refused(exc.message) from exc
        except ks_exc.Unauthorized as exc:
            raise Refused(f'Nova does not take the token: {exc.message}'
                          ) from exc
        except ks_exc.ClientException as exc:
            # Without the name, which is the user's.
            raise nova_api.NovaError(f'GET /{kind}: {exc}') from exc

    def _own(self):
        if self._adapter is None:
            self._adapter = _adapter(
                nova_api.load_session(self._conf), self._conf)
        return self._adapter


def load():
    """Load Nova's objects, which flavors are read with."""
    objects.register_all()


def _alternative(found, from_volume):
    """A backlog_model.Alternative, with what Nova's scheduler asks Placement
    for.

    :param found: a flavor as Nova's API has it
    """
    extra_specs = found.get('extra_specs') or {}
    load()
    flavor = objects.Flavor(
        flavorid=found['id'], name=found['name'], vcpus=found['vcpus'],
        memory_mb=found['ram'], root_gb=found['disk'],
        ephemeral_gb=found.get('OS-FLV-EXT-DATA:ephemeral', 0),
        swap=found.get('swap') or 0, extra_specs=dict(extra_specs))
    asked = nova_utils.ResourceRequest.from_request_spec(
        objects.RequestSpec(flavor=flavor, is_bfv=from_volume))
    group = asked.get_request_group(None)
    return backlog_model.Alternative(
        found['id'], found['name'], asked.merged_resources(),
        specs.flavor_is_preemptible(extra_specs),
        specs.maximum_runtime_s(extra_specs),
        tuple(sorted(group.required_traits)),
        tuple(sorted(group.forbidden_traits)),
        specs.minimum_runtime_s(extra_specs), specs.notice_s(extra_specs),
        class_name=specs.class_name(extra_specs))


def as_hinted(options, body, alternatives):
    """The same, preemptible if a hint makes them so and that is allowed.

    :param options: [preemption] of the configuration
    :param body: Nova's, with its hints beside the server
    """
    if not (options.allow_hint
            and specs.hint_is_preemptible(allowed_hosts.hints(body))):
        return alternatives
    return tuple(dataclasses.replace(item, preemptible=True)
                 for item in alternatives)


def _adapter(session, conf):
    """Nova's API as the catalog of a session has it, or [preemption]."""
    group = conf[preemption.GROUP]
    return ks_adapter.Adapter(
        session, service_type=group.service_type,
        region_name=group.region_name,
        interface=group.valid_interfaces or ['internal'],
        endpoint_override=group.endpoint_override)


def _endpoint(adapter):
    """Where Nova is.

    :raises NovaError: nobody can be asked
    """
    try:
        found = adapter.get_endpoint()
    except ks_exc.ClientException as exc:
        raise nova_api.NovaError(f'Where Nova is: {exc}') from exc
    if not found:
        raise nova_api.NovaError('The catalog has no endpoint of Nova.')
    return found


def _server_uuid(answer):
    try:
        return answer.json()['server']['id']
    except (ValueError, KeyError, TypeError):
        return ''


def _fault(answer):
    """(Nova's words, what it calls the error) of an answer."""
    try:
        (kind, fault), = answer.json().items()
        return fault['message'], kind
    except (ValueError, KeyError, TypeError, AttributeError):
        return f'{answer.status_code} {answer.reason}', ''
