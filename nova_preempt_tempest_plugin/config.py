# SPDX-License-Identifier: Apache-2.0
"""Options of tempest.conf."""

from oslo_config import cfg

service_option = cfg.BoolOpt(
    'nova_preempt',
    default=False,
    help='Whether nova-preempt is deployed: its scheduler, engine and API.')

preemption_group = cfg.OptGroup(
    name='preemption', title='Preemptible servers')

PreemptionGroup = [
    cfg.StrOpt(
        'catalog_type',
        default='preemption',
        help='Type of the service in the catalog.'),
    cfg.StrOpt(
        'region',
        default='',
        help='Region of the service; [identity]region if it is empty.'),
    cfg.StrOpt(
        'endpoint_type',
        default='publicURL',
        choices=['public', 'admin', 'internal', 'publicURL', 'adminURL',
                 'internalURL'],
        help='Endpoint of the catalog that is used.'),
    cfg.IntOpt(
        'end_timeout',
        default=120,
        min=1,
        help='How many seconds an eviction may take beside the notice, which '
             'these tests set to 0.'),
]

preemption_feature_group = cfg.OptGroup(
    name='preemption-feature-enabled',
    title='Features of nova-preempt that are turned on')

PreemptionFeatureGroup = [
    cfg.BoolOpt(
        'reservation',
        default=False,
        help='Whether [reservation]enabled is set in nova.conf.'),
    cfg.BoolOpt(
        'energy',
        default=True,
        help='Whether energy is tested, which needs only the API.'),
]
