"""UpdateFeatures: levels are what they are."""

import pytest
from inprocess import run

from ottla.base.errors import ErrorCode
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


def asking(**levels):
    return UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name.replace("_", "."), max_version_level=level)
            for name, level in levels.items()
        ]
    )


@pytest.mark.parametrize("version", range(3))
def test_the_level_that_is_there_can_be_asked_for(version):
    """Any other is refused, and with it all of the request."""

    async def scenario(caller):
        answer = await caller.call(asking(transaction_version=2, share_version=1), version)
        assert answer.error_code == ErrorCode.NONE
        assert [r.error_code for r in answer.results] == [0, 0][: 2 * (version < 2)]
        answer = await caller.call(asking(share_version=1, transaction_version=1), version)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert "transaction.version to 1: it is always 2 here" in answer.error_message
        answer = await caller.call(asking(metadata_version=27), version)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert "there is no such feature here" in answer.error_message

    run(scenario)


def test_a_feature_named_twice_is_refused():
    """Which of the two should hold?"""

    async def scenario(caller):
        request = asking(share_version=1)
        request.feature_updates *= 2
        assert (await caller.call(request, 2)).error_code == ErrorCode.INVALID_REQUEST

    run(scenario)
