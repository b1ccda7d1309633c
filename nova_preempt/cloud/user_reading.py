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

"""What a user finds in Nova, with the user's own token."""

import dataclasses

from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading as ks_loading
from nova import objects
from nova.scheduler import utils as nova_utils

from nova_preempt import segments
from nova_preempt.cloud import extra_specs as specs
from nova_preempt.cloud import nova_api
from nova_preempt.conf import preemption
from nova_preempt.core.backlog import model
from nova_preempt.core.backlog import places

# Extra specs with the flavor.
_FLAVORS = '2.61'
# The last with images, and one with key pairs as they are now.
_IMAGES = '2.35'
_KEY_PAIRS = '2.10'


class NotFound(Exception):
    """There is no such thing, or the user may not see it."""


class Refused(Exception):
    """Nova does not let this user ask; has Nova's words."""


def load():
    """Load Nova's objects, which flavors are read with."""
    objects.register_all()


class UserReading:
    """Looks things up as a user.

    :param conf: a ConfigOpts with [preemption], which says where Nova is
    """

    def __init__(self, conf):
        self._conf = conf
        self._session = None

    # All of these raise NotFound, Refused, or NovaError where nobody knows.

    def flavor(self, token, flavor_id, from_volume=False):
        """A model.Alternative.

        :param from_volume: whether its root disk is a volume
        """
        return _alternative(
            self._get(token, _FLAVORS, 'flavors', flavor_id)['flavor'],
            from_volume)

    def ladder(self, token, name, from_volume=False):
        """[model.Alternative] of the flavors with this name of a ladder."""
        found, marker = [], {}
        while page := self._ask(token, _FLAVORS, 'flavors', 'detail',
                                **marker)['flavors']:
            found += [_alternative(flavor, from_volume) for flavor in page
                      if specs.ladder(flavor.get('extra_specs') or {})
                      == name]
            marker = {'marker': page[-1]['id']}
        return found

    def image(self, token, image_id):
        """Complain if there is none."""
        self._get(token, _IMAGES, 'images', image_id)

    def key_pair(self, token, name):
        """Complain if there is none."""
        self._get(token, _KEY_PAIRS, 'os-keypairs', name, others=())

    def _get(self, token, version, kind, name, others=segments.DETAIL):
        try:
            return self._ask(token, version, kind,
                             segments.segment(str(name), others))
        except segments.NotASegment as exc:
            raise NotFound(str(exc)) from None

    def _ask(self, token, version, kind, name, **query):
        try:
            return self._own().get(
                f'{self._endpoint()}/{kind}/{name}', authenticated=False,
                params=query,
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

    def _endpoint(self):
        group = self._conf[preemption.GROUP]
        try:
            found = group.endpoint_override or self._own().get_endpoint(
                service_type=group.service_type,
                region_name=group.region_name,
                interface=group.valid_interfaces or ['internal'])
        except ks_exc.ClientException as exc:
            raise nova_api.NovaError(f'where Nova is: {exc}') from exc
        if not found:
            raise nova_api.NovaError('the catalog does not say where it is')
        return found.rstrip('/')

    def _own(self):
        if self._session is None:
            self._session = ks_loading.load_session_from_conf_options(
                self._conf, preemption.GROUP,
                auth=ks_loading.load_auth_from_conf_options(
                    self._conf, preemption.GROUP))
        return self._session


def _alternative(found, from_volume):
    """A model.Alternative, with what Nova's scheduler asks Placement for.

    :param found: a flavor as Nova's API has it
    """
    extra_specs = found.get('extra_specs') or {}
    load()
    flavor = objects.Flavor(
        flavorid=found['id'], name=found['name'], vcpus=found['vcpus'],
        memory_mb=found['ram'], root_gb=found['disk'],
        ephemeral_gb=found.get('OS-FLV-EXT-DATA:ephemeral', 0),
        swap=found.get('swap') or 0,
        extra_specs=dict(extra_specs))
    asked = nova_utils.ResourceRequest.from_request_spec(
        objects.RequestSpec(flavor=flavor, is_bfv=from_volume))
    group = asked.get_request_group(None)
    return model.Alternative(
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
            and specs.hint_is_preemptible(places.hints(body))):
        return alternatives
    return tuple(dataclasses.replace(item, preemptible=True)
                 for item in alternatives)
