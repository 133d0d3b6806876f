"""Settings of client metrics: patterns that a client sends."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.client_metrics import check_client_metrics


@pytest.mark.parametrize("pattern", ["(" * 5000 + ")" * 5000, "a{99999999999999999999}", "["])
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    """Also where Python's parser ends otherwise than by its own error."""
    with pytest.raises(OttlaError) as refused:
        check_client_metrics({"match": f"client_id={pattern}"})
    assert refused.value.code is ErrorCode.INVALID_CONFIG
