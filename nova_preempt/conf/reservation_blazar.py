# SPDX-License-Identifier: Apache-2.0
"""[reservation_blazar]: how Blazar is asked for its host leases."""

from keystoneauth1 import loading as ks_loading
from oslo_config import cfg

GROUP = 'reservation_blazar'

TIMEOUT_S = 10


def list_opts():
    """keystoneauth's, for the credentials, the session and the endpoint."""
    return (_session_opts() + ks_loading.get_auth_common_conf_options() +
            ks_loading.get_auth_plugin_conf_options('password') +
            _adapter_opts())


def _session_opts():
    opts = ks_loading.get_session_conf_options()
    # Without one, a Blazar that hangs would be waited for for ever.
    cfg.set_defaults(opts, timeout=TIMEOUT_S)
    return opts


def _adapter_opts():
    opts = ks_loading.get_adapter_conf_options(include_deprecated=False)
    # The API version is something the code knows about.
    opts = [opt for opt in opts
            if opt.dest not in ('version', 'min_version', 'max_version')]
    cfg.set_defaults(opts, service_type='reservation',
                     valid_interfaces=['internal', 'public'])
    return opts


def register_opts(conf):
    conf.register_opts(_session_opts(), group=GROUP)
    ks_loading.register_auth_conf_options(conf, GROUP)
    conf.register_opts(_adapter_opts(), group=GROUP)
