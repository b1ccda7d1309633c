# SPDX-License-Identifier: Apache-2.0
"""Calls the REST APIs of power sources and drivers."""

import contextlib

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading as ks_loading

from nova_preempt.conf import preemption
from nova_preempt.core import credential_masking
from nova_preempt.power import power_errors
from nova_preempt.power import power_readings

# Of an error's body, which may be a page of HTML.
_SHOWN_CHARACTERS = 300


class RestError(Exception):
    """A request failed.

    :param message: the error; its credentials are masked
    :ivar status: the status code, None without an answer
    """

    def __init__(self, message, status=None):
        super().__init__(credential_masking.masked(message))
        self.status = status


def make_adapter(conf, url='', service_type=None, authenticate=True,
                 **options):
    """Return a keystoneauth1 Adapter, with the TLS options of [preemption].

    :param url: by default the catalog's
    :param authenticate: whether to authenticate as the user in [preemption]
    """
    group = conf[preemption.GROUP]
    session = make_session(conf, power_readings.TIMEOUT_S, authenticate)
    return adapter.Adapter(
        session, service_type=service_type, region_name=group.region_name,
        interface=group.valid_interfaces,
        endpoint_override=url.rstrip('/') or None, **options)


def make_session(conf, timeout_s, authenticate=True, group=preemption.GROUP):
    """Return a keystoneauth1 Session, authenticated by a group's options."""
    auth = None
    if authenticate:
        auth = ks_loading.load_auth_from_conf_options(conf, group)
    return ks_loading.load_session_from_conf_options(
        conf, group, auth=auth, timeout=timeout_s)


def call(client, method, path, **options):
    """Return the JSON of the answer, None if it is empty.

    :raises RestError: no answer, or an error
    """
    try:
        response = client.request(path, method, raise_exc=False, **options)
    except ks_exc.ClientException as exc:
        raise RestError(f'{method} {path}: {exc}') from exc
    if response.status_code >= 400:
        text = ' '.join(response.text.split())[:_SHOWN_CHARACTERS]
        raise RestError(
            f'{method} {response.url}: {response.status_code} {text}',
            response.status_code)
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as exc:
        raise RestError(f'{method} {response.url}: invalid JSON: {exc}',
                        response.status_code) from exc


@contextlib.contextmanager
def answers_of(service):
    """Turn errors within, and invalid answers, into a SourceError.

    :param service: its name, for operators
    """
    try:
        yield
    except RestError as exc:
        raise power_errors.SourceError(str(exc)) from exc
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise power_errors.SourceError(
            f'{service} gave an unexpected answer: {exc!r}') from exc
