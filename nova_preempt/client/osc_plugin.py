# SPDX-License-Identifier: Apache-2.0
"""The plugin of openstackclient."""

import importlib.util
import logging
import sys

from osc_lib import exceptions
from osc_lib import utils

from nova_preempt import sdk

LOG = logging.getLogger(__name__)

API_NAME = 'preemption'
API_VERSION_OPTION = 'os_preemption_api_version'
API_VERSIONS = {'1': 'nova_preempt.sdk.v1._proxy.Proxy'}
DEFAULT_API_VERSION = '1'

ENDPOINT = 'OS_PREEMPTION_ENDPOINT'


def make_client(instance):
    """Return the Proxy for the endpoint of the catalog or the option.

    :param instance: an osc_lib ClientManager
    """
    return sdk.add_to(instance.sdk_connection).preemption


def check_api_version(version):
    """Refuse an unsupported version, of which openstackclient only warns.

    :returns: True, so that openstackclient does not check it
    :raises CommandError: it is not supported
    """
    _warn_of_clash(sys.argv)
    if version not in API_VERSIONS:
        raise exceptions.CommandError(
            f'--os-preemption-api-version (or OS_PREEMPTION_API_VERSION) '
            f'{version} is not supported; supported are '
            f'{", ".join(API_VERSIONS)}. It is the major version; each '
            'command requests the microversion that it needs.')
    return True


def _warn_of_clash(words):
    """Warn if the words may be a command of ours, or one of Blazar."""
    if {'reservation', 'host'} <= set(words) and importlib.util.find_spec(
            'blazarclient'):
        LOG.warning(
            'The plugins of Blazar and of nova-preempt both have the commands '
            '"reservation host list", "show" and "set"; "openstack help '
            'reservation host list" names the one that answers. "openstack '
            'preemption host list", "show" and "set" are those of '
            'nova-preempt.')


def build_option_parser(parser):
    """Add the global options."""
    parser.add_argument(
        '--os-preemption-api-version', metavar='<preemption-api-version>',
        default=utils.env('OS_PREEMPTION_API_VERSION',
                          default=DEFAULT_API_VERSION),
        help='Major version of the Preemption API, default: '
             f'{DEFAULT_API_VERSION} (Env: OS_PREEMPTION_API_VERSION)')
    parser.add_argument(
        '--os-preemption-endpoint', metavar='<preemption-endpoint>',
        default=utils.env(ENDPOINT),
        help='URL of the Preemption API, instead of that of the catalog '
             f'(Env: {ENDPOINT})')
    return parser
