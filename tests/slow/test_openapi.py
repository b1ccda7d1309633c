# SPDX-License-Identifier: Apache-2.0
"""The API is what its OpenAPI document says, whatever is sent, more often."""

from tests.unit.api import test_openapi


class TestOperations(test_openapi.TestOperations):

    examples = 25
