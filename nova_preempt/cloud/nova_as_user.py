# SPDX-License-Identifier: Apache-2.0
"""Client of Nova's API with a user's credentials.

So the user's quotas, policies and key pairs apply.
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
from nova_preempt.core.backlog import backlog_model
from nova_preempt.core.backlog import reservation_rules

# The microversion of calls other than a boot.
VERSION = '2.52'
# The last version in which server groups have a list of policies.
_GROUPS = '2.63'
_PAGE = 1000
# The version that shows extra specs with flavors.
_FLAVORS = '2.61'
# The last version with images, and the one with current key pairs.
_IMAGES = '2.35'
_KEY_PAIRS = '2.10'

_OK = (200, 202, 204)


@dataclasses.dataclass(frozen=True)
class Reply:
    """Nova's answer to POST /servers.

    :ivar status: the HTTP status; None if there was no answer and the request
        may have arrived
    :ivar text: Nova's message; the failure, if there was no answer
    :ivar kind: Nova's error key, such as "itemNotFound"; '' if the answer is
        not from Nova
    :ivar server_uuid: of the first server that was created
    """

    status: int | None
    text: str = ''
    kind: str = ''
    server_uuid: str = ''


class ServerGroupNotCreated(Exception):
    """Nova did not create a server group; ``reply`` says why."""

    def __init__(self, reply):
        super().__init__(reply.text)
        self.reply = reply


class NotFound(Exception):
    """The resource does not exist, or the user may not see it."""


class Refused(Exception):
    """Nova refuses the user's call; the text is Nova's message."""


class UserNova:
    """Boots, reads and deletes servers of a user.

    :param session: the user's keystoneauth1 Session
    :param conf: with [preemption], which configures Nova's endpoint
    :param timeout_s: the time limit of a call
    """

    def __init__(self, session, conf, timeout_s):
        self._timeout_s = timeout_s
        self._adapter = _adapter(session, conf)

    def check(self):
        """Find Nova's endpoint, so that later failures are those of Nova.

        :raises NovaError: there is none
        """
        _endpoint(self._adapter)

    def create(self, body, version):
        """Boot servers, without retries.

        :param body: of POST /servers
        :param version: the body's microversion
        :returns: a Reply
        """
        try:
            # The body has passwords and user data, the answer has a password.
            answer = self._call('POST', '/servers', version, json=body,
                                log=False)
        except ks_exc.ClientException as exc:
            return Reply(None, str(exc))
        if answer.status_code in _OK:
            return Reply(answer.status_code, server_uuid=_server_uuid(answer))
        return Reply(answer.status_code, *_fault(answer))

    def group(self, name):
        """Return the uuid of an anti-affinity group, created if needed.

        :raises ServerGroupNotCreated: Nova refuses, or does not answer
        """
        body = {'server_group': {'name': name, 'policies': ['anti-affinity']}}
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
        """Delete a server group if it exists. Raises NovaError."""
        for found in self._groups(name):
            self._ask('DELETE', '/os-server-groups/'
                      + url_segments.segment(found['id']))

    def _groups(self, name):
        """Yield the server groups of this name."""
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
        """Return whether the user can boot the flavor. Raises NovaError."""
        return self._ask(
            'GET', '/flavors/' + url_segments.segment(
                flavor_id, url_segments.DETAIL)) is not None

    def limits(self):
        """Return {name: number} of absolute limits. Raises NovaError."""
        answer = self._ask('GET', '/limits')
        return answer.json()['limits']['absolute'] if answer else {}

    def delete(self, uuid):
        """Delete a server if it exists. Raises NovaError."""
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
        # NOTE: No retries: a request that arrived without an answer would
        # create its servers twice.
        return self._adapter.request(
            url, method, microversion=version, raise_exc=False,
            connect_retries=0, status_code_retries=0,
            timeout=self._timeout_s, **kwargs)


class ResourceLookup:
    """Reads flavors, images and key pairs with a user's token.

    Methods raise NotFound, Refused, or NovaError if Nova cannot be reached.

    :param conf: a ConfigOpts with [preemption], which configures Nova's
        endpoint
    """

    def __init__(self, conf):
        self._conf = conf
        self._adapter = None

    def flavor(self, token, flavor_id, from_volume=False):
        """Return the backlog_model.Alternative of a flavor.

        :param from_volume: whether its root disk is a volume
        """
        return _alternative(
            self._get(token, _FLAVORS, 'flavors', flavor_id)['flavor'],
            from_volume)

    def ladder(self, token, name, from_volume=False):
        """Return [backlog_model.Alternative] of the flavors of a ladder."""
        found, marker = [], {}
        while page := self._ask(token, _FLAVORS, 'flavors', 'detail',
                                **marker)['flavors']:
            found += [_alternative(flavor, from_volume) for flavor in page
                      if specs.ladder(flavor.get('extra_specs') or {}) == name]
            marker = {'marker': page[-1]['id']}
        return found

    def image(self, token, image_id):
        """Raise NotFound if the image does not exist."""
        self._get(token, _IMAGES, 'images', image_id)

    def key_pair(self, token, name):
        """Raise NotFound if the key pair does not exist."""
        self._get(token, _KEY_PAIRS, 'os-keypairs', name, others=())

    def _get(self, token, version, kind, name, others=url_segments.DETAIL):
        try:
            return self._ask(token, version, kind,
                             url_segments.segment(str(name), others))
        except url_segments.NotASegment as exc:
            raise NotFound(str(exc)) from None

    def _ask(self, token, version, kind, name, **query):
        nova = self._own()
        # Finding the endpoint needs our session, not the user's.
        endpoint = _endpoint(nova)
        try:
            return nova.get(
                f'/{kind}/{name}', endpoint_override=endpoint,
                authenticated=False, params=query, headers={
                    'X-Auth-Token': token,
                    'OpenStack-API-Version': f'compute {version}'}).json()
        except ks_exc.NotFound:
            raise NotFound(f'There is no such {kind}.') from None
        except (ks_exc.BadRequest, ks_exc.Forbidden) as exc:
            raise Refused(exc.message) from exc
        except ks_exc.Unauthorized as exc:
            raise Refused(f'Nova does not accept the token: {exc.message}'
                          ) from exc
        except ks_exc.ClientException as exc:
            # Without the name, which the user has chosen.
            raise nova_api.NovaError(f'GET /{kind}: {exc}') from exc

    def _own(self):
        if self._adapter is None:
            self._adapter = _adapter(
                nova_api.load_session(self._conf), self._conf)
        return self._adapter


def load():
    """Register Nova's objects, which flavors are parsed with."""
    objects.register_all()


def _alternative(found, from_volume):
    """Return the backlog_model.Alternative of a flavor.

    Its resources and traits are those that Nova requests from Placement.

    :param found: a flavor of Nova's API
    """
    extra_specs = specs.translated(found.get('extra_specs') or {})
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
    """Return the alternatives, preemptible if an allowed hint says so.

    :param options: [preemption] of the configuration
    :param body: of POST /servers, with its scheduler hints
    """
    if not (preemption.HINT in options.marks
            and specs.hint_is_preemptible(reservation_rules.hints(body))):
        return alternatives
    return tuple(dataclasses.replace(item, preemptible=True)
                 for item in alternatives)


def _adapter(session, conf):
    """Make an adapter of Nova's API by the catalog or [preemption]."""
    group = conf[preemption.GROUP]
    return ks_adapter.Adapter(
        session, service_type=group.service_type,
        region_name=group.region_name,
        interface=group.valid_interfaces or ['internal'],
        endpoint_override=group.endpoint_override)


def _endpoint(adapter):
    """Return Nova's endpoint.

    :raises NovaError: there is none
    """
    try:
        found = adapter.get_endpoint()
    except ks_exc.ClientException as exc:
        raise nova_api.NovaError(f"Cannot find Nova's API: {exc}") from exc
    if not found:
        raise nova_api.NovaError('The catalog has no endpoint for Nova.')
    return found


def _server_uuid(answer):
    try:
        return answer.json()['server']['id']
    except (ValueError, KeyError, TypeError):
        return ''


def _fault(answer):
    """Return (message, error key) of a failed call."""
    try:
        (kind, fault), = answer.json().items()
        return fault['message'], kind
    except (ValueError, KeyError, TypeError, AttributeError):
        return f'{answer.status_code} {answer.reason}', ''
