# SPDX-License-Identifier: Apache-2.0
"""Options of [reservation_blazar]: credentials and timeout for Blazar."""

from keystoneauth1 import loading as ks_loading
from oslo_config import cfg

GROUP = 'reservation_blazar'

TIMEOUT_S = 10


def list_opts():
    """Return keystoneauth's options: credentials, session and endpoint."""
    return (_session_opts() + ks_loading.get_auth_common_conf_options() +
            ks_loading.get_auth_plugin_conf_options('password') +
            _adapter_opts())


def _session_opts():
    opts = ks_loading.get_session_conf_options()
    # Without a timeout, a call of a hanging Blazar would never return.
    cfg.set_defaults(opts, timeout=TIMEOUT_S)
    return opts


def _adapter_opts():
    opts = ks_loading.get_adapter_conf_options(include_deprecated=False)
    # The code determines the API version.
    opts = [opt for opt in opts
            if opt.dest not in ('version', 'min_version', 'max_version')]
    cfg.set_defaults(opts, service_type='reservation',
                     valid_interfaces=['internal', 'public'])
    return opts


def register_opts(conf):
    conf.register_opts(_session_opts(), group=GROUP)
    ks_loading.register_auth_conf_options(conf, GROUP)
    conf.register_opts(_adapter_opts(), group=GROUP)
