"""UpdateFeatures: all levels of a request, or none."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.cluster import UpdateFeatures
from ottla.wire.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest

from .cluster_world import call, play

UP, DOWN = 1, 2


async def update(world, *updates, version=2, **fields):
    keys = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    request = UpdateFeaturesRequest(feature_updates=keys, **fields)
    return await call(UpdateFeatures(world.features), request, version)


def test_a_level_is_lowered_and_raised():
    """In the image, whose epoch says that something changed; a trial changes nothing."""

    async def scenario(world):
        before = world.view.image.features_epoch
        trial = await update(world, ("share.version", 0, DOWN), validate_only=True)
        assert trial.error_code == 0
        assert world.view.image.features["share.version"] == 1
        assert (await update(world, ("share.version", 0, DOWN))).error_code == 0
        assert world.view.image.features["share.version"] == 0
        assert world.view.image.features_epoch > before
        answer = await update(world, ("share.version", 1, UP), version=1)
        assert [(each.feature, each.error_code) for each in answer.results] == [
            ("share.version", 0)
        ]
        assert world.view.image.features["share.version"] == 1

    play(scenario)


@pytest.mark.parametrize(
    "refused",
    [("no.such", 1, UP), ("share.version", 9, UP), ("transaction.version", 0, UP)],
)
def test_one_level_that_cannot_be_refuses_all(refused):
    """A feature or a level that there is not, or an upgrade that would lower."""

    async def scenario(world):
        answer = await update(world, ("group.version", 0, DOWN), refused)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.error_message
        assert world.view.image.features["group.version"] == 1

    play(scenario)


def test_version_0_cannot_downgrade():
    """It has no upgrade type; as in Kafka, every update of it is an upgrade."""

    async def scenario(world):
        request = UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(feature="share.version", max_version_level=0, allow_downgrade=True)
            ]
        )
        answer = await call(UpdateFeatures(world.features), request, 0)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.results == []

    play(scenario)
