# SPDX-License-Identifier: Apache-2.0
"""Options of [preemption_benchmark]: credentials of the benchmark."""

from keystoneauth1 import loading as ks_loading
from oslo_config import cfg

GROUP = 'preemption_benchmark'


def list_opts():
    """Return keystoneauth's options: credentials, session and endpoint."""
    return (ks_loading.get_session_conf_options() +
            ks_loading.get_auth_common_conf_options() +
            ks_loading.get_auth_plugin_conf_options('password') +
            _adapter_opts())


def _adapter_opts():
    opts = ks_loading.get_adapter_conf_options(include_deprecated=False)
    # The code determines the service and its version.
    opts = [opt for opt in opts
            if opt.dest in ('region_name', 'valid_interfaces')]
    cfg.set_defaults(opts, valid_interfaces=['internal', 'public'])
    return opts


def register_opts(conf):
    ks_loading.register_session_conf_options(conf, GROUP)
    ks_loading.register_auth_conf_options(conf, GROUP)
    conf.register_opts(_adapter_opts(), group=GROUP)
