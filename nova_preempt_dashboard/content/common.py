# SPDX-License-Identifier: Apache-2.0
"""Base classes of tables, views and forms of all panels."""

import contextlib
import re

from django.core import validators
from django.core.cache import cache
from django.utils.safestring import mark_safe
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import forms
from horizon import tables
from keystoneauth1 import exceptions as auth_exceptions
from openstack_dashboard.api import keystone
from openstack_dashboard.utils import settings as setting_utils

from nova_preempt_dashboard import api
from nova_preempt_dashboard import client
from nova_preempt_dashboard import paging
from nova_preempt_dashboard import periods

_FIELD = re.compile(r"'\w+\.(\w+)")
# Of the detail page of a table's first column.
SERVICE = 'preemption'
#: How long the names of projects and of users are kept, in seconds.
NAME_AGE_S = 300


def rule(name):
    """Return the policy_rules of a panel or an action for one rule."""
    return ((SERVICE, f'preemption:{name}'),)


def column(source, label, *filters, **values):
    """Return a column of a table.

    :param source: an attribute, a key, or a function of a row
    :param filters: functions that make text of what source gives
    """
    return tables.Column(source, verbose_name=label, filters=filters,
                         **values)


def call(request, text, function, *args, default=None, redirect=None,
         **values):
    """Call a function of the API; show a message if it fails.

    :param text: the message
    :param default: returned on a failure
    :param redirect: the URL to which a failure leads instead
    """
    try:
        return function(*args, **values)
    except (api.RequestFailed, api.SignedOut):
        exceptions.handle(request, text, redirect=redirect)
        return default


def get(request, text, redirect, function, *args, **values):
    """Call a function of the API; redirect with a message if it fails."""
    return call(request, text, function, *args, redirect=redirect, **values)


def names(request, kind, ids):
    """Return {id: name}, with the id as the name if Keystone does not say.

    :param kind: "projects" or "users"
    """
    found = {}
    with contextlib.suppress(auth_exceptions.ClientException):
        found = any(ids) and cache.get_or_set(
            f'nova_preempt-{request.user.id}-{kind}', lambda: {
                each.id: each.name for each in getattr(
                    keystone.keystoneclient(request), kind).list()},
            NAME_AGE_S)
    return {each: found.get(each, each) for each in ids if each}


class ApiMixin:
    """The api.Api of the user of a request."""

    @property
    def api(self):
        return client.preemption(self.request)


class PagedTable(tables.DataTable):
    """A table whose links to pages have trails."""

    page = paging.Page([])

    def get_pagination_string(self):
        return self._link(self.page.next_trail)

    def get_prev_pagination_string(self):
        return self._link(self.page.previous_trail or '')

    def _link(self, trail):
        query = self.request.GET.copy()
        query.pop('trail', None)
        if trail:
            query['trail'] = trail
        # Encoded, and so free of markup.
        return mark_safe(query.urlencode().replace('&', '&amp;'))


class PagedView(ApiMixin, tables.PagedTableMixin, tables.DataTableView):
    """A table of one page of a list.

    :cvar listing: the method of api.Api that reads the page
    :cvar query: more of its parameters
    """

    failure = _('Unable to list.')
    listing = ''
    query = {}

    def get_data(self):
        # A user can choose any number.
        size = min(max(setting_utils.get_page_size(self.request), 1),
                   api.MOST_ITEMS)
        page = call(
            self.request, self.failure, getattr(self.api, self.listing), size,
            self.request.GET.get('trail', ''), default=paging.Page([]),
            **self.query)
        self._has_more_data = bool(page.next_trail)
        self._has_prev_data = page.previous_trail is not None
        self.table.page = page
        return page.items


class Form(ApiMixin, forms.SelfHandlingForm):
    """A form that shows a refusal of the API at the field it is about.

    :cvar api_fields: {field of the API: field of the form} where they differ
    """

    api_fields = {}

    def send(self, function, *args, **values):
        """Call a function of the API; return None if it refuses."""
        try:
            return function(*args, **values)
        except api.RequestFailed as exc:
            self._show(str(exc))
            return None

    def _show(self, text):
        found = _FIELD.search(text)
        name = found and self.api_fields.get(found.group(1), found.group(1))
        self.add_error(name if name in self.fields else None, text)


class FormView(ApiMixin, forms.ModalFormView):
    """A form as a dialog, or as a page for a browser that opens it alone.

    :cvar help_texts: paragraphs beside the form
    """

    template_name = 'nova_preempt/form.html'
    help_texts = ()

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        context.update(
            help_texts=self.help_texts, modal_header=self.page_title,
            submit_url=self.request.path)
        return context


def moment_field(label, help_text='', **values):
    """Return a field of a date and a time, in the user's time zone."""
    return forms.DateTimeField(
        label=label, help_text=help_text, validators=[
            validators.MinValueValidator(periods.EARLIEST),
            validators.MaxValueValidator(periods.LATEST)], input_formats=[
            '%Y-%m-%dT%H:%M', '%Y-%m-%dT%H:%M:%S', '%Y-%m-%d %H:%M'],
        widget=forms.DateTimeInput(
            format='%Y-%m-%dT%H:%M', attrs={'type': 'datetime-local'}),
        **values)
