"""Which process this is: from flags, SLURM, Open MPI, a TPU pod."""

import pytest
from absl import flags

from nmt_jax.distributed.process_spec import ProcessSpec, define_place_flags, find_place, first_host
from nmt_jax.errors import UserError

SLURM = {"SLURM_JOB_ID": "10123", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "gpu[007-009,12]"}


def place(arguments=(), environment=None):
    flag_values = flags.FlagValues()
    define_place_flags(flag_values)
    flag_values(["program", *arguments])
    return find_place(flag_values, environment or {})


def test_alone():
    assert place() is None
    assert place(["--coordinator=a:1", "--processes=1", "--process=0"]) is None
    assert place(environment={**SLURM, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}) is None
    assert (
        place(environment={"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_PROCID": "0"}) is None
    )  # the batch script


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({**SLURM, "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}, ProcessSpec("gpu007:50123", 4, 3)),
        (
            {
                "OMPI_COMM_WORLD_SIZE": "2",
                "OMPI_COMM_WORLD_RANK": "1",
                "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
            },
            ProcessSpec("10.96.0.1:53920", 2, 1),
        ),
        ({"TPU_WORKER_HOSTNAMES": "t0,t1", "TPU_WORKER_ID": "1"}, ProcessSpec("t0:50000", 2, 1)),
    ],
)
def test_schedulers(environment, expected):
    assert place(environment=environment) == expected


def test_flags_come_first():
    environment = {**SLURM, "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}
    assert place(["--coordinator=h:5", "--processes=2", "--process=1"], environment) == ProcessSpec("h:5", 2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--processes=2"], "belong together: give all three"),
        (["--coordinator=h", "--processes=2", "--process=0"], "--coordinator=h: write it as HOST:PORT"),
        (["--coordinator=h:1", "--processes=2", "--process=2"], "--process=2: 2 processes count from 0 to 1"),
    ],
)
def test_flags_that_do_not_fit(arguments, message):
    with pytest.raises(UserError, match=message):
        place(arguments)


@pytest.mark.parametrize(
    ("nodes", "host"), [("n1", "n1"), ("n1,n2", "n1"), ("n[3-5]", "n3"), ("n[01,07-09]-ib,x", "n01-ib")]
)
def test_the_first_host_of_a_list(nodes, host):
    assert first_host(nodes) == host
