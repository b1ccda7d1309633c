# SPDX-License-Identifier: Apache-2.0
"""The plugin of openstackclient."""

from osc_lib import exceptions
from osc_lib import utils

from nova_preempt import sdk

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
    if version not in API_VERSIONS:
        raise exceptions.CommandError(
            f'--os-preemption-api-version (or OS_PREEMPTION_API_VERSION) '
            f'{version} is not supported; supported are '
            f'{", ".join(API_VERSIONS)}. It is the major version; each '
            'command requests the microversion that it needs.')
    return True


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
