import pytest

pytest.register_assert_rewrite("tests.unit.coordination.contract")
