"""Bytes and communication of compiled programs, from their text."""

import jax
import jax.numpy as jnp
import pytest

from nmt_jax.planning.program_text import ProgramText

TILED = "f32[256,512]{1,0:T(8,128)}"  # 512 KiB
ON_CHIP = "f32[256,512]{1,0:T(8,128)S(1)}"
SIZE = 256 * 512 * 4


def program(body, others=""):
    return f"{others}\nENTRY %main (p: f32[256,512]) -> f32[256,512] {{\n  %p = {TILED} parameter(0)\n{body}\n}}\n"


def accessed(body, others="", **options):
    return ProgramText(program(body, others), **options).bytes_accessed


def test_an_operation_reads_its_operands_and_writes_its_result():
    assert accessed(f"  ROOT %n = {TILED} negate(%p)") == 2 * SIZE
    assert accessed(f"  ROOT %b = {TILED} bitcast(%p)") == 0


def test_on_chip_memory_counts_on_demand():
    body = f"""  %c = ({ON_CHIP}, {TILED}, u32[]{{:S(2)}}) copy-start(%p)
  %d = {ON_CHIP} copy-done(%c)
  %n = {ON_CHIP} negate(%d)
  ROOT %m = {TILED} negate(%n)"""
    assert accessed(body) == 2 * SIZE
    assert accessed(body, on_chip=True) == 6 * SIZE


def test_arrays_are_padded_to_tiles():
    narrow = "f32[256,64]{1,0:T(8,128)}"
    assert accessed(f"  ROOT %s = {narrow} some-operation(%p)") == SIZE + 256 * 128 * 4
    assert accessed("  ROOT %s = bf16[30,8,3]{0,2,1:T(8,128)(2,1)} some-operation()") == 8 * 8 * 128 * 2


LOOP = f"""%body (q: (s32[], f32[256,512])) -> (s32[], f32[256,512]) {{
  %q = (s32[], {TILED}) parameter(0)
  %x = {TILED} get-tuple-element(%q), index=1
  %y = {TILED} negate(%x)
  ROOT %t = (s32[], {TILED}) tuple(%i, %y)
}}
%condition (r: (s32[], f32[256,512])) -> pred[] {{
  %n = s32[] constant(7)
  %r = (s32[], {TILED}) parameter(0)
  %i = s32[] get-tuple-element(%r), index=0
  ROOT %l = pred[] compare(%i, %n), direction=LT
}}"""


@pytest.mark.parametrize(
    ("known", "trips"), [("", 7), (', backend_config={"known_trip_count":{"n":"5"}}', 5)], ids=["constant", "known"]
)
def test_loops_count_as_often_as_they_run(known, trips):
    body = f"  ROOT %w = (s32[], {TILED}) while(%t), condition=%condition, body=%body, metadata={{}}{known}"
    assert accessed(body, LOOP) == trips * 2 * SIZE


def test_a_loop_of_unknown_length_runs_as_often_as_told():
    loop = LOOP.replace("direction=LT", "direction=NE")
    body = f"  ROOT %w = (s32[], {TILED}) while(%t), condition=%condition, body=%body"
    assert accessed(body, loop, trips=3) == 3 * 2 * SIZE


def test_a_fusion_reads_slices_and_writes_in_place():
    stacked = "f32[6,256,512]{2,1,0:T(8,128)}"
    sliced = "f32[1,256,512]{2,1,0:T(8,128)}"
    fused = f"""%fused (a: f32[6,256,512], i: s32[], b: f32[6,256,512]) -> f32[6,256,512] {{
  %a = {stacked} parameter(0)
  %i = s32[] parameter(1)
  %b = {stacked} parameter(2)
  %s = {sliced} dynamic-slice(%a, %i), dynamic_slice_sizes={{1,256,512}}
  %n = {sliced} negate(%s)
  ROOT %u = {stacked} dynamic-update-slice(%b, %n, %i)
}}"""
    body = f"""  %stack = {stacked} parameter(1)
  %i = s32[] parameter(2)
  ROOT %f = {stacked} fusion(%stack, %i, %stack), kind=kLoop, calls=%fused"""
    assert accessed(body, fused) == pytest.approx(2 * SIZE, abs=8)


def test_a_collective_behind_several_fusions_counts_once():
    """As the TPU compiler hides an all-gather behind computation."""
    gathered = "f32[1024,512]{1,0:T(8,128)}"
    fused = "\n".join(
        f"""%async{number} (a: f32[256,512], g: f32[1024,512]) -> (f32[256,512], f32[1024,512]) {{
  %a = {TILED} parameter(0)
  %g = {gathered} parameter(1)
  %n = {TILED} negate(%a)
  %all-gather.{number} = {gathered} all-gather(%a), channel_id=9, replica_groups=[2,4]<=[8], dimensions={{0}}
  ROOT %t = ({TILED}, {gathered}) tuple(%n, %g)
}}"""
        for number in range(3)
    )
    calls = [
        f"  %f{number} = ({TILED}, {gathered}) fusion(%p, %g), kind=kOutput, calls=%async{number}"
        for number in range(3)
    ]
    text = ProgramText(program("\n".join([f"  %g = {gathered} parameter(1)", *calls]), fused))
    (collective,) = text.collectives
    assert (collective.kind, collective.size, collective.times) == ("all-gather", 4 * SIZE, 1)
    assert collective.sent == 3 * SIZE
    assert text.bytes_accessed == 3 * 2 * SIZE + 5 * SIZE  # three negations; the gather reads one part and writes four


def test_reduce_scatters_of_tpus_are_fused_all_reduces():
    """Each device keeps a part of the sum. Several of them may share a channel."""
    fused = f"""%all-reduce-scatter.1 (p0: f32[256,512]) -> f32[64,512] {{
  %p0 = {TILED} parameter(0)
  %r = {TILED} all-reduce(%p0), channel_id=1, replica_groups=[2,4]<=[8]
  ROOT %s = f32[64,512]{{1,0:T(8,128)}} dynamic-slice(%r, %i), dynamic_slice_sizes={{64,512}}
}}"""
    body = "\n".join(
        f"  %f{number} = f32[64,512]{{1,0:T(8,128)}} fusion(%p), kind=kCustom, calls=%all-reduce-scatter.1"
        for number in range(2)
    )
    text = ProgramText(program(body, fused))
    (collective,) = text.collectives
    assert (collective.kind, collective.size, collective.times) == ("reduce-scatter", SIZE / 4, 2)
    assert collective.sent == 2 * 0.75 * SIZE
    assert text.bytes_accessed == 2 * 1.25 * SIZE


def test_a_collective_behind_a_loop_counts_where_it_starts():
    gathered = "f32[1024,512]{1,0:T(8,128)}"
    gather = f"{gathered} all-gather(%p0), channel_id=9, replica_groups=[2,4]<=[8], dimensions={{0}}"
    fused = f"""%start (p0: f32[256,512]) -> f32[1024,512] {{
  %p0 = {TILED} parameter(0)
  %all-gather.1 = {gather}
  ROOT %c = {gathered} custom-call(%all-gather.1), custom_call_target="AsyncCollectiveStart"
}}
%step (p0: f32[256,512], g: f32[1024,512]) -> f32[1024,512] {{
  %p0 = {TILED} parameter(0)
  %g = {gathered} parameter(1)
  %all-gather.2 = {gather}
  ROOT %t = ({gathered}) tuple(%g)
}}"""
    loop = LOOP.replace("negate(%x)", "fusion(%x, %g), kind=kOutput, calls=%step")
    body = f"""  %s = {gathered} fusion(%p), kind=kOutput, calls=%start
  ROOT %w = (s32[], {TILED}) while(%t), condition=%condition, body=%body"""
    (collective,) = ProgramText(program(body, f"{fused}\n{loop}")).collectives
    assert (collective.times, collective.size) == (1, 4 * SIZE)


@pytest.mark.parametrize(
    ("line", "size", "sent"),
    [
        ("f32[100] all-reduce(%p), ", 400, 600),
        ("f32[100] all-reduce-start(%p), ", 400, 600),
        ("(f32[100], f32[20]) all-reduce(%p, %q), ", 480, 720),
        ("f32[100] reduce-scatter(%p), ", 400, 1200),
        ("(f32[256,512]{1,0:T(8,128)}, f32[1024,512]) all-gather-start(%p), ", 4 * SIZE, 3 * SIZE),
    ],
)
def test_bytes_sent(line, size, sent):
    (collective,) = ProgramText(program(f"  %c = {line}replica_groups=[2,4]<=[8]")).collectives
    assert (collective.size, collective.sent) == (size, sent)


def test_operations_are_named_by_the_model():
    path = "jit(train_step)/transpose(jvp(Model))/Model._encode/encoder_3/ffn/hidden/dot_general"
    text = ProgramText(program(f'  ROOT %n = {TILED} negate(%p), metadata={{op_name="{path}" stack_frame_id=3}}'))
    assert text.consumers == {"gradient: encoder/ffn/hidden/dot_general": 2 * SIZE}


def test_bytes_of_a_program_without_loops_are_those_of_xla():
    """Within 10 %: XLA counts a fused operand that is used twice in other ways."""

    def layer(x, w, v):
        hidden = jax.nn.gelu(x @ w)
        return jnp.sum(jnp.square(x + hidden @ v), axis=-1)

    arguments = jnp.ones((64, 96)), jnp.ones((96, 160)), jnp.ones((160, 96))
    compiled = jax.jit(jax.grad(lambda *a: layer(*a).sum(), argnums=(0, 1, 2))).lower(*arguments).compile()
    accessed = ProgramText(compiled.as_text()).bytes_accessed
    assert accessed == pytest.approx(compiled.cost_analysis()["bytes accessed"], rel=0.1)


def test_a_compiled_loop_counts_as_often_as_it_runs():
    def repeated(length):
        def step(x, _):
            return jnp.tanh(x @ x), None

        compiled = jax.jit(lambda x: jax.lax.scan(step, x, length=length)[0]).lower(jnp.ones((64, 64))).compile()
        return ProgramText(compiled.as_text()).bytes_accessed

    few, many = repeated(10), repeated(110)
    assert many / few == pytest.approx(11, rel=0.1)
