"""The compiled code of CUDA rungs: main loops consist of the instructions that a rung is about."""

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ARCH = "sm_90a"
# Minimum share of FFMA in the longest loop. CUDA 13.0 compiles 0.79, 0.85 to 0.89 and 0.86 to 0.89;
# loads of single floats, for rows that are not aligned, cost more.
FFMA_SHARE = {"vectorized": 0.75, "warp_tile": 0.83, "split_k": 0.83}
CLUSTER_SPLIT = ["tf32_split_k", "tf32x3_split_k"]
TENSOR_CORE = ["tf32_tensor_core", "tf32x3", *CLUSTER_SPLIT]
# Kernels that several files instantiate, by their template arguments.
SHARED_KERNELS = {
    "tf32_tensor_core": "18tensor_tile_kernelINS0_10TensorTileINS0_4Tf32E",
    "tf32x3": "18tensor_tile_kernelINS0_10TensorTileINS0_6Tf32x3E",
    "tf32_split_k": "21tensor_split_k_kernelINS0_10TensorTileINS0_4Tf32E",
    "tf32x3_split_k": "21tensor_split_k_kernelINS0_10TensorTileINS0_6Tf32x3E",
}
RUNGS = ["coalesced", "shared_memory", "register_tile", *FFMA_SHARE, *TENSOR_CORE]
MATMUL_WGMMA, CONVOLUTION_WGMMA = "6matmul12wgmma_kernel", "11convolution12wgmma_kernel"
# Parts of the mangled names of other kernels: convolution's winograd_gemm, all_reduce's peer_ring,
# layers, max_pool.
WINOGRAD_GEMM, PEER_RING, LAYERS = "batched_gemm_kernel", "_peer_ring_cu_", "10stepladder6layers"
MAX_POOL = "10stepladder8max_pool"
WINOGRAD_TRANSFORMS = [
    "planes_to_tiles_kernel", "tiles_to_planes_kernel", "filters_to_matrices_kernel",
    "matrices_to_filters_kernel"]


@pytest.fixture(scope="module")
def kernels(program_path):
    """{mangled kernel: [(address, instruction)]}"""
    if "built without CUDA" in subprocess.run([program_path, "list", "--place", "cuda"],
                                              capture_output=True, text=True, check=True).stdout:
        pytest.skip("built without CUDA")
    # The packages of tests/requirements.txt have cuobjdump and the nvdisasm that it calls.
    folders = sorted(
        str(folder) for folder in Path(sysconfig.get_path("purelib")).glob("nvidia/cu*/bin"))
    path = os.pathsep.join([*folders, os.environ["PATH"]])
    assert shutil.which("cuobjdump",
                        path=path), "cuobjdump was not found; scripts/setup.sh test installs it"
    listing = subprocess.run(["cuobjdump", "-sass", "-arch", ARCH,
                              str(program_path)], capture_output=True, text=True,
                             env=os.environ | {"PATH": path})
    found, code = {}, None
    for line in listing.stdout.splitlines():
        if name := re.match(r"\s*Function : (\S+)", line):
            code = found.setdefault(name[1], [])
        elif (instruction := re.match(r"\s*/\*([0-9a-f]+)\*/\s+(.*?)\s*;",
                                      line)) and code is not None:
            code.append((int(instruction[1], 16), instruction[2]))
    if not found:
        pytest.skip(f"not built for {ARCH}")
    return found


def named(kernels, part):
    found = {name: code for name, code in kernels.items() if part in name}
    assert found, f"no kernel has {part} in its name"
    return found


def of_rung(kernels, rung):
    pattern = SHARED_KERNELS.get(rung, rf"10stepladder6matmul\S*?\d_{rung}_cu_")
    found = {name: code for name, code in kernels.items() if re.search(pattern, name)}
    assert found, f"no kernel of {rung}"
    return found


def operation(instruction):
    if instruction.startswith("@!PT"):  # never: padding that nvcc puts beside asynchronous copies
        return ""
    return re.sub(r"^@!?U?P\w+\s+", "", instruction).split()[0]


def count(code, what):
    return sum(operation(text).startswith(what) for _, text in code)


def main_loop(code):
    """The instructions between a backward branch and its target, where most of them are
    multiply-adds."""
    jumps = ((at, re.search(r"\bBRA\b.*?0x([0-9a-f]+)", text)) for at, text in code)
    loops = [[line for line in code if int(jump[1], 16) <= line[0] <= at]
             for at, jump in jumps if jump and int(jump[1], 16) < at]
    return max(loops, key=lambda loop: count(loop, "FFMA"))


@pytest.mark.parametrize("rung", RUNGS)
def test_nothing_is_spilled_to_local_memory(kernels, rung):
    for name, code in of_rung(kernels, rung).items():
        assert not count(code, ("STL", "LDL")), name


@pytest.mark.parametrize("rung", FFMA_SHARE)
def test_the_main_loop_is_multiply_adds(kernels, rung):
    loops = [
        main_loop(code) for code in of_rung(kernels, rung).values() if count(code, "FFMA") >= 512]
    if rung == "vectorized":  # its other kernel takes single floats
        loops = [loop for loop in loops if count(loop, "LDG.E.128")]
    assert loops
    for loop in loops:
        assert count(loop, "FFMA") >= FFMA_SHARE[rung] * len(loop)
        assert count(loop, "LDS") == count(
            loop, "LDS.128") == count(loop, "FFMA") / 16  # 4 for 64 products


def test_vectorized_reads_and_writes_128_bits(kernels):
    found = of_rung(kernels, "vectorized").values()
    assert any(count(code, "LDG.E.128") and count(code, "STG.E.128") for code in found)


@pytest.mark.parametrize("rung", ["warp_tile", "split_k", *TENSOR_CORE])
def test_copies_to_shared_memory_bypass_the_registers(kernels, rung):
    found = [code for code in of_rung(kernels, rung).values() if count(code, ("FFMA", "HMMA"))]
    assert all(count(code, "LDGSTS") for code in found)
    assert any(count(code, "LDGSTS.E.BYPASS.128") for code in found)


@pytest.mark.parametrize("rung", TENSOR_CORE)
def test_the_tensor_cores_multiply(kernels, rung):
    for name, code in of_rung(kernels, rung).items():
        assert count(code, "HMMA.1688.F32.TF32"), name
        assert not count(code, "FFMA"), name


@pytest.mark.parametrize("rung", CLUSTER_SPLIT)
def test_slices_are_added_in_distributed_shared_memory(kernels, rung):
    for name, code in of_rung(kernels, rung).items():
        assert count(code, "UCGABAR_ARV") == count(code, "UCGABAR_WAIT") == 2, name
        # Fragments go out in pairs and come back four at a time.
        assert count(code, "ST.E.64") == 16 and count(code, "LDS.128"), name
        assert not count(code, ("ATOM", "RED")), name


def of_wgmma(kernels):
    """{mangled kernel:
    (code, whether it is convolution's, columns of a tile, products for each)}"""
    found = {}
    for part in (MATMUL_WGMMA, CONVOLUTION_WGMMA):
        for name, code in named(kernels, part).items():
            accumulators = re.search(r"\dTf32(x3)?AccumulatorsILi(\d+)E", name)
            found[name] = code, part == CONVOLUTION_WGMMA, int(
                accumulators[2]), 3 if accumulators[1] else 1
    return found


# (whether it is convolution's, columns of a tile, products for each). 3xTF32 has not enough
# registers for 256.
WGMMA_TILES = {(False, 256, 1), (False, 128, 1), (False, 64, 1), (False, 128, 3), (False, 64, 3),
               (True, 256, 1), (True, 128, 1), (True, 64, 1), (True, 128, 3), (True, 64, 3)}
# Each exists for matmul's clusters of one and two blocks, and for convolution's directions.
WGMMA_FORMS = {False: {"EEELi1E", "EEELi2E"}, True: {"WgmmaCorrelation", "WgmmaBackwardWeights"}}


def test_every_tile_of_wgmma_is_there_in_every_form(kernels):
    found = {(*tile, form) for name, (_, *tile) in of_wgmma(kernels).items()
             for form in WGMMA_FORMS[tile[0]] if form in name}
    assert found == {(*tile, form) for tile in WGMMA_TILES for form in WGMMA_FORMS[tile[0]]}


def test_warpgroups_multiply_and_the_tma_loads(kernels):
    for name, (code, _, columns, products) in of_wgmma(kernels).items():
        width = min(columns, 128)
        # K = 32 per step
        assert count(code, f"HGMMA.64x{width}x8.F32.TF32") == 4 * products * columns // width, name
        assert not count(code, ("HMMA", "FFMA", "STL", "LDL")), name
        assert count(code, "UTMALDG.2D"), name
        assert count(code, "USETMAXREG") == 2, name


def test_convolution_gathers_16_bytes_at_a_time_without_registers(kernels):
    for name, (code, is_convolution, _, _) in of_wgmma(kernels).items():
        # one step: 8 chunks per thread, through L1, whose completion the barrier tracks
        assert count(code, "LDGSTS") == count(code,
                                              "LDGSTS.E.128") == (8 if is_convolution else 0), name
        assert count(code, "ARRIVES.LDGSTSBAR") == is_convolution, name


def test_clusters_of_two_blocks_multicast_the_shared_operand(kernels):
    sizes = set()
    for name, code in named(kernels, MATMUL_WGMMA).items():
        cluster = int(re.search(r"AccumulatorsILi\d+EEELi(\d)E", name)[1])
        sizes.add(cluster)
        parts = 2 if "Tf32x3" in name else 1
        assert count(code, "UTMALDG.2D.MULTICAST") == (parts if cluster > 1 else 0), name
        # The cluster barriers at both ends fence global memory; the loop must not.
        assert count(code, "UCGABAR_WAIT") == count(
            code, "MEMBAR.ALL.GPU") == (2 if cluster > 1 else 0), name
    assert sizes == {1, 2}


@pytest.mark.parametrize("part", [WINOGRAD_GEMM, *WINOGRAD_TRANSFORMS, PEER_RING, LAYERS, MAX_POOL])
def test_other_kernels_do_not_spill(kernels, part):
    for name, code in named(kernels, part).items():
        assert not count(code, ("STL", "LDL")), name


def test_winograd_multiplies_vectors_of_shared_memory(kernels):
    for name, code in named(kernels, WINOGRAD_GEMM).items():
        loop = main_loop(code)
        # 0.83 to 0.87 in tiles of 64 x 128 and 128 x 128, 0.72 to 0.79 with half as many
        # accumulators per thread.
        assert count(loop, "FFMA") >= (0.8 if count(loop, "FFMA") >= 512 else 0.7) * len(loop), name
        assert count(loop, "LDS") == count(loop, "LDS.128"), name
        assert count(code, "LDG.E.128") and count(code, "STG.E.128"), name


def test_the_peer_ring_adds_in_vectors(kernels):
    assert any(count(code, "LDG.E.128") >= 2 and count(code, "STG.E.128")
               for code in named(kernels, PEER_RING).values())


def max_pools(kernels, which, lanes=r"\d", epilogue=r"\d"):
    pattern = (rf"{MAX_POOL}\S*?_vectorized_cu_\S*?{which}_kernel"
               rf"ILi\dELi\dELi{lanes}ELNS0_8EpilogueE{epilogue}E")
    found = [code for name, code in kernels.items() if re.search(pattern, name)]
    assert found
    return found


def test_max_pool_reads_or_writes_128_bits(kernels):
    for code in max_pools(kernels, "forward", lanes=4):
        assert count(code, "LDG.E.128") in (2, 3)  # a row of the window each
    for code in max_pools(kernels, "backward", lanes=4):
        assert count(code, "STG.E.128") == 2


def test_max_pool_issues_all_loads_before_it_compares(kernels):
    for code in max_pools(kernels, "forward"):
        operations = [operation(text) for _, text in code]
        compared = next(i for i, what in enumerate(operations) if what.startswith("FSETP"))
        assert not any(what.startswith("LDG") for what in operations[compared:])


def test_the_bias_gradient_of_max_pool_is_added_without_atomics(kernels):
    for code in max_pools(kernels, "backward", epilogue=1):
        assert count(code,
                     ("ATOM", "RED")) == count(code, "ATOMG.E.INC") == 1  # the count of blocks


def test_layers_read_and_write_128_bits(kernels):
    for name, code in named(kernels, "6layers10map_kernel").items():
        assert count(code, "LDG.E.128") and count(code, "STG.E.128"), name


def test_sums_over_planes_have_four_loads_of_128_bits_in_flight(kernels):
    for name, code in named(kernels, "6layers17sum_planes_kernelILi4").items():
        assert count(code, "LDG.E.128") >= 4, name
