# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the API against its OpenAPI document for longer."""

from tests.unit.api import test_openapi


class TestOperations(test_openapi.TestOperations):

    examples = 25
