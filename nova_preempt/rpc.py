# SPDX-License-Identifier: Apache-2.0
"""RPC clients of the scheduler and the engine, over Nova's message bus."""

from oslo_log import log as logging
import oslo_messaging as messaging

from nova_preempt import exceptions
from nova_preempt.cloud import nova_contexts
from nova_preempt.core import credential_masking

LOG = logging.getLogger(__name__)

# By default oslo.messaging retries for ever while the bus is down, and an API
# request waits for the answer.
_RETRIES = 1

# RPC namespaces of the engine's endpoints.
BACKLOG = 'backlog'
ENERGY = 'energy'
INVENTORY = 'inventory'


def get_transport(conf):
    """Return the transport of [DEFAULT]transport_url, not connected yet."""
    return messaging.get_rpc_transport(
        conf, allowed_remote_exmods=[exceptions.__name__])


def check_transport(conf):
    """Raise where [DEFAULT]transport_url cannot be used.

    :raises InvalidConfiguration: without the URL, which has a password
    """
    try:
        get_transport(conf).cleanup()
    except Exception as exc:  # noqa: BLE001 (whatever a library has)
        # NOTE: a library's error may quote any part of an address that it
        # cannot parse.
        reason = (credential_masking.masked(exc, conf.transport_url)
                  if isinstance(exc, (messaging.InvalidTransportURL,
                                      messaging.DriverLoadFailure))
                  else type(exc).__name__)
        raise exceptions.InvalidConfiguration(
            f'[DEFAULT]transport_url cannot be used: {reason}') from None


class _Client:

    target = None
    service = ''

    def __init__(self, transport, timeout_s=None):
        self.transport = transport
        self._timeout_s = timeout_s
        self._client = messaging.get_rpc_client(
            transport, self.target, retry=_RETRIES,
            serializer=nova_contexts.serializer())

    def _call(self, context, method, **arguments):
        return self._send(self._client, context, method, arguments)

    def _send(self, client, context, method, arguments):
        if self._timeout_s is not None:
            client = client.prepare(timeout=self._timeout_s)
        try:
            return client.call(context, method, **arguments)
        except messaging.MessagingTimeout:
            raise exceptions.NoAnswer(
                f'The {self.service} did not answer in time.') from None
        except messaging.MessageDeliveryFailure:
            LOG.exception('No message reached the %s.', self.service)
            raise exceptions.NoAnswer(
                f'The {self.service} cannot be reached.') from None
        except exceptions.PreemptError:
            raise
        except Exception:
            # Any failure of the service. A stock nova-scheduler listens to
            # the same topic and does not know the method.
            LOG.exception('Call %s of the %s failed.', method, self.service)
            raise exceptions.NoAnswer(
                f'The {self.service} failed; its log or that of '
                'nova-preempt-api says why.') from None


class SchedulerPreviewClient(_Client):
    """Asks nova-preempt-scheduler for previews of its decisions.

    :param transport: see get_transport()
    :param timeout_s: how long to wait for an answer, in seconds;
        [DEFAULT]rpc_response_timeout if None
    """

    target = messaging.Target(topic='scheduler', namespace='nova_preempt',
                              version='1.0')
    service = 'scheduler'

    def explain(self, context, flavor, project_id, user_id,
                availability_zone=None, host=None, is_bounded=True):
        """Return which servers a boot of this flavor would evict now.

        :param flavor: its id or name
        :param is_bounded: whether the project's rate limit applies
        :returns: {'outcome': 'free', 'preempts' or 'no_valid_host',
            'host': str or None, 'cost_us': int, 'reason': str,
            'victims': [{'server_uuid', 'project_id', 'flavor', 'cost_us'}],
            'considered': [{'host', 'node', 'victims': [uuid], 'cost_us'}]}
        :raises FlavorNotFound, TooManyQuestions, NoAnswer:
        """
        return self._call(
            context, 'explain', flavor=flavor, project_id=project_id,
            user_id=user_id, availability_zone=availability_zone, host=host,
            is_bounded=is_bounded)

    def placement_chances(self, context, flavors, project_id,
                          availability_zone=None, is_bounded=True):
        """Return how many servers of these flavors would fit now.

        :param flavors: ids or names
        :param is_bounded: as above
        :returns: [{'flavor', 'availability_zone', 'preemptible': int,
            'normal': int}]; both numbers are None where the resources of a
            flavor are not known
        :raises FlavorNotFound, TooManyQuestions:
        :raises NoAnswer: for any flavor, or in time for all
        """
        return self._call(
            context, 'placement_chances', flavors=flavors,
            project_id=project_id, availability_zone=availability_zone,
            is_bounded=is_bounded)


class EngineClient(_Client):
    """Calls nova-preempt-engine. Parameters as above."""

    target = messaging.Target(topic='nova_preempt_engine', version='1.0')
    service = 'engine'

    def simulate(self, context, server_uuid, project_id, reason):
        """Evict a preemptible server as a preemption would.

        :param project_id: that the server must belong to; any if None
        :returns: the uuid of the decision
        :raises ServerNotFound, NotPreemptible, CannotEnd, AlreadyEnding,
            Paused, NoAnswer:
        """
        return self._call(context, 'simulate', server_uuid=server_uuid,
                          project_id=project_id, reason=reason)

    def wake_hosts(self, context, request, servers, hosts):
        """Power on sleeping hosts for a request, if they are needed.

        :param request: identifies the request
        :param servers: how many servers it is for
        :param hosts: {name: how many of these servers fit on it}
        :returns: {'hosts': [names of the hosts promised to it],
            'boot_s': how long waking them may take}
        :raises NoAnswer:
        """
        return self._ask(ENERGY, context, 'wake', request=request,
                         servers=servers, hosts=hosts)

    def find_hosts(self, context, host_properties):
        """Return the hosts with these properties that can be reserved.

        :param host_properties: a query, see core.reservation.host_query
        :returns: [{'name', 'flops_per_watt': float or None, 'vacant': bool}]
            of enabled hosts that are up, in order of their names
        :raises InvalidReservation: the query is invalid
        :raises NoAnswer:
        """
        return self._ask(INVENTORY, context, 'find_hosts',
                         host_properties=host_properties)

    def list_properties(self, context):
        """Return the properties that a reservation may ask of hosts.

        :returns: [{'name', 'type': 'number', 'text', 'boolean' or 'list',
            'values': [examples], 'hidden': bool}], by name
        :raises NoAnswer:
        """
        return self._ask(INVENTORY, context, 'list_properties')

    def list_hosts(self, context):
        """Return all hosts.

        :returns: [{'name', 'service_host', 'state', 'status',
            'reservable': bool, 'vacant': bool, 'running_servers': int,
            'flops_per_watt': float or None, 'properties': {name: value}}],
            by name
        :raises NoAnswer:
        """
        return self._ask(INVENTORY, context, 'list_hosts')

    def plan_backlog(self, context):
        """Return what a pass over the backlog would start now.

        :returns: {'mode': see [backlog]batch_mode, 'stopped': why nothing is
            started, '' if it is, 'waiting': how many requests may start by
            their own constraints, 'starts': [{'request', 'name',
            'project_id', 'flavor', 'count', 'hosts': {name: how many}, {} if
            Nova chooses}], 'hosts': [{'name', 'resources': {class:
            {'capacity', 'used', 'used_after'}}}], by name}
        :raises NoAnswer:
        """
        return self._ask(BACKLOG, context, 'plan')

    def ping(self, context, server):
        """Check that messages reach one engine.

        :param server: its name on the bus
        :raises NoAnswer: it does not answer in time
        """
        self._send(self._client.prepare(
            namespace=INVENTORY, server=server), context, 'ping', {})

    def _ask(self, namespace, context, method, **arguments):
        return self._send(self._client.prepare(namespace=namespace), context,
                          method, arguments)
