# SPDX-License-Identifier: Apache-2.0
"""Builds the WSGI application with its middleware."""

import socket

from oslo_middleware import healthcheck
from oslo_middleware import http_proxy_to_wsgi
from oslo_middleware import request_id
from oslo_middleware import sizelimit

from nova_preempt import db
from nova_preempt import rpc
from nova_preempt.api import authentication
from nova_preempt.api import http_errors
from nova_preempt.api import microversion
from nova_preempt.api import operation_table
from nova_preempt.api import policy
from nova_preempt.api import router
from nova_preempt.backlog import request_intake
from nova_preempt.backlog import transition_recorder
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_as_user
from nova_preempt.handover import eviction_policy
from nova_preempt.power import efficiency_cache
from nova_preempt.reservation import reservation_scheduler

HEALTHCHECK = '/healthcheck'


def make_services(conf):
    """Return the configured Services, without connecting to any."""
    transport = rpc.get_transport(conf)
    timeout_s = conf.preemption_api.rpc_timeout_s
    database = db.Database(conf)
    engine = rpc.EngineClient(transport, timeout_s)
    known_classes = eviction_policy.load_classes(conf)
    return router.HandlerServices(
        conf=conf, database=database, policy=policy.Policy(conf),
        scheduler=rpc.SchedulerPreviewClient(transport, timeout_s),
        engine=engine,
        schedule=reservation_scheduler.ReservationScheduler(conf, database,
                                                            engine),
        figures=efficiency_cache.EfficiencyCache(
            conf.energy, lambda: database), classes=known_classes,
        submissions=request_intake.RequestIntake(
            conf, database, keystone_trusts.Trusts(conf),
            nova_as_user.ResourceLookup(conf),
            known_classes, tell=transition_recorder.RequestNotifications(
                conf, socket.gethostname()).changed))


def make_app(conf, services=None):
    """Return the WSGI application.

    :param conf: a ConfigOpts that was called, with the options of Nova and
        nova_preempt
    :param services: router.HandlerServices; None to create them
    """
    services = services or make_services(conf)
    app = _PathSwitch(
        healthcheck.Healthcheck(None, conf),
        router.Router(services, operation_table.PUBLIC),
        authentication.authenticated(microversion.middleware(
            router.Router(services, operation_table.OPERATIONS)), conf))
    app = sizelimit.RequestBodySizeLimiter(app, conf)
    app = http_proxy_to_wsgi.HTTPProxyToWSGI(app, conf)
    return request_id.RequestId(http_errors.middleware(app), conf)


class _PathSwitch:

    def __init__(self, health, public, private):
        self._health = health
        self._public = public
        self._private = private

    def __call__(self, environ, start_response):
        if environ.get('PATH_INFO') == HEALTHCHECK:
            app = self._health
        elif self._public.match(environ):
            app = self._public
        else:
            app = self._private
        return app(environ, start_response)
