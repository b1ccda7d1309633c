# SPDX-License-Identifier: Apache-2.0
"""Fields of a form that describe new servers."""

from django.utils.translation import gettext_lazy as _
from horizon import forms

from nova_preempt_dashboard.content import common

_NETWORKS = (('auto', _('Automatic')), ('none', _('None')))


class ServerForm(common.Form):
    """Name, flavor, image, number, network and key pair of servers."""

    name = forms.CharField(label=_('Name of the servers'), max_length=255)
    flavor = forms.ChoiceField(label=_('Flavor'))
    image = forms.ChoiceField(label=_('Image'))
    count = forms.IntegerField(
        label=_('Number of servers'), min_value=1, initial=1)
    network = forms.ChoiceField(label=_('Network'))
    key_name = forms.ChoiceField(label=_('Key pair'), required=False)

    def __init__(self, request, *args, **kwargs):
        super().__init__(request, *args, **kwargs)
        self.fields['flavor'].choices = self._read(
            _('Unable to list flavors.'), self.api.flavors, _flavor)
        self.fields['image'].choices = self._read(
            _('Unable to list images.'), self.api.images)
        self.fields['network'].choices = [*_NETWORKS, *self._read(
            _('Unable to list networks.'), self.api.networks)]
        self.fields['key_name'].choices = [('', _('None')), *(
            (name, name) for name, _name in self._read(
                _('Unable to list key pairs.'), self.api.key_pairs))]

    def _read(self, text, function, label=lambda item: item.name):
        found = common.call(self.request, text, function, default=())
        return sorted(((item.id, label(item)) for item in found),
                      key=lambda choice: str(choice[1]))

    def server(self, data):
        """Return the members of servers for the API of Nova."""
        network = data['network']
        found = {
            'name': data['name'], 'flavor_id': data['flavor'],
            'image_id': data['image'], 'min_count': data['count'],
            'max_count': data['count'],
            'networks': network if network in dict(_NETWORKS) else [
                {'uuid': network}],
        }
        if data['key_name']:
            found['key_name'] = data['key_name']
        return found


def _flavor(flavor):
    return _('%(name)s: %(vcpus)s vCPUs, %(ram)s MB') % {
        'name': flavor.name, 'vcpus': flavor.vcpus, 'ram': flavor.ram}
