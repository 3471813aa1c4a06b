"""The three forms in which XLA prints groups of devices, and the mesh axes that they run over."""

import pytest

from nmt_jax.planning.replica_groups import axes_of, groups_of

ROWS, COLUMNS = ((0, 1), (2, 3), (4, 5), (6, 7)), ((0, 2, 4, 6), (1, 3, 5, 7))


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("replica_groups={{0,1},{2,3},{4,5},{6,7}}, use_global_device_ids=true", ROWS),
        ("replica_groups=[4,2]<=[8], dimensions={0}", ROWS),
        ("replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}", COLUMNS),
        ("channel_id=3, replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_1'}, use_global", ROWS),
        ("replica_groups=mesh['axis_0'=4,'axis_1'=1,'axis_2'=2] {'axis_0'}, to_apply=%add", COLUMNS),
        ("replica_groups=mesh['a'=8] {'a':(4)2}", ROWS),
        ("replica_groups=mesh['a'=8] {'a':(1)4}", COLUMNS),
        ("source_target_pairs={{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}, metadata={}", COLUMNS),
        ("to_apply=%add", ()),
    ],
)
def test_groups(text, groups):
    assert groups_of(text) == groups


def test_axes():
    shape, names = (4, 2), ("data", "model")
    assert axes_of(ROWS, shape, names) == ("model",)
    assert axes_of(COLUMNS, shape, names) == ("data",)
    assert axes_of((tuple(range(8)),), shape, names) == ("data", "model")
