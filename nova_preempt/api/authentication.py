# SPDX-License-Identifier: Apache-2.0
"""Identify the caller of a request from Keystone's headers."""

from keystoneauth1 import loading as ks_loading
from keystonemiddleware import audit
from keystonemiddleware import auth_token
from oslo_log import log as logging
import webob.dec

from nova_preempt import exceptions
from nova_preempt.api import http_errors
from nova_preempt.cloud import nova_contexts

LOG = logging.getLogger(__name__)


_GROUP = 'keystone_authtoken'


def authenticated(app, conf):
    """Wrap the application to check tokens and create request contexts.

    :raises InvalidConfiguration: [keystone_authtoken] is missing
    """
    app = _context(app)
    if conf.preemption_api.audit_map_file:
        app = _audited(app, conf)
    if conf.preemption_api.auth_strategy == 'keystone':
        _check(conf)
        return auth_token.AuthProtocol(app, {'oslo_config_config': conf})
    LOG.warning('[preemption_api]auth_strategy is noauth: the API does not '
                'authenticate users.')
    return _noauth(app)


def _check(conf):
    """Check the credentials, without which each request would fail."""
    conf.register_opts(ks_loading.get_auth_common_conf_options(), _GROUP)
    if not (conf[_GROUP].auth_type or conf[_GROUP].auth_section):
        raise exceptions.InvalidConfiguration(
            f'[{_GROUP}]auth_type is not set, so that tokens cannot be '
            'validated. Set auth_type, auth_url, username, password, '
            'project_name, user_domain_name and project_domain_name as in '
            'that section of nova-api, or, for tests only, '
            '[preemption_api]auth_strategy to noauth.')


def check_audit_map(conf):
    """Check that [preemption_api]audit_map_file can be used.

    :raises InvalidConfiguration:
    """
    if conf.preemption_api.audit_map_file:
        _audited(None, conf)


def _audited(app, conf):
    try:
        return audit.AuditMiddleware(
            app, audit_map_file=conf.preemption_api.audit_map_file,
            service_name='preemption', oslo_config_config=conf)
    except Exception as exc:
        # Whatever keystonemiddleware and the parser of the file raise.
        raise exceptions.InvalidConfiguration(
            '[preemption_api]audit_map_file '
            f'{conf.preemption_api.audit_map_file} cannot be used: '
            f'{exc}') from exc


@webob.dec.wsgify.middleware
def _context(request, app):
    roles = [role.strip() for role in
             request.headers.get('X-Roles', '').split(',')]
    # is_admin is for receivers of RPC calls; policy rules use the roles.
    context = nova_contexts.of_request(request.environ, 'admin' in roles)
    # Handlers take a missing project for all projects.
    if not context.project_id:
        return http_errors.response(403, 'A token for a project is needed.')
    # Other services do not act for the user, so the token is not passed on.
    context.auth_token = None
    request.environ['nova_preempt.context'] = context
    return request.get_response(app)


@webob.dec.wsgify.middleware
def _noauth(request, app):
    user, _, project = request.headers.get('X-Auth-Token', '').partition(':')
    if not (user and project):
        return http_errors.response(401, 'A token "user:project" is needed.')
    roles = ['reader', 'member'] + ['admin'] * (user == 'admin')
    request.headers.update({'X-User-Id': user, 'X-Project-Id': project,
                            'X-Roles': ','.join(roles)})
    return request.get_response(app)
