"""Which process this is: from flags, SLURM, Open MPI, a TPU pod."""

import socket

import pytest
from absl import flags

from nmt_jax.distributed.process_spec import ProcessSpec, bind_host, define_process_flags, find_process_spec, first_host
from nmt_jax.errors import UserError

SLURM = {"SLURM_JOB_ID": "10123", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "gpu[007-009,12]"}


def find(arguments=(), environment=None):
    flag_values = flags.FlagValues()
    define_process_flags(flag_values)
    flag_values(["program", *arguments])
    return find_process_spec(flag_values, environment or {})


def test_a_single_process():
    assert find() is None
    assert find(["--coordinator=a:1", "--processes=1", "--process=0"]) is None
    assert find(environment={**SLURM, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}) is None
    assert find(environment={"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_PROCID": "0"}) is None  # the batch script


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
    assert find(environment=environment) == expected


def test_flags_override_the_environment():
    environment = {**SLURM, "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}
    assert find(["--coordinator=h:5", "--processes=2", "--process=1"], environment) == ProcessSpec("h:5", 2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--processes=2"], "must be given together"),
        (["--coordinator=h", "--processes=2", "--process=0"], "--coordinator=h: expected HOST:PORT"),
        (["--coordinator=h:1", "--processes=2", "--process=2"], "--process=2: must be less than --processes=2"),
    ],
)
def test_flags_that_contradict_each_other(arguments, message):
    with pytest.raises(UserError, match=message):
        find(arguments)


@pytest.mark.parametrize(
    ("nodes", "host"), [("n1", "n1"), ("n1,n2", "n1"), ("n[3-5]", "n3"), ("n[01,07-09]-ib,x", "n01-ib")]
)
def test_the_first_host_of_a_node_list(nodes, host):
    assert first_host(nodes) == host


def test_where_process_0_listens(monkeypatch):
    assert bind_host("127.0.0.1") == bind_host("localhost") == "127.0.0.1"
    for address in ("127.0.1.1", "192.0.2.1"):  # as in Debian's /etc/hosts; of no interface
        monkeypatch.setattr(socket, "gethostbyname", lambda host, address=address: address)
        assert bind_host("node1") == ""
    monkeypatch.setattr(socket, "gethostbyname", lambda host: "127.0.0.1")
    assert bind_host("node1") == ""
