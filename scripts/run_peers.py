"""make peers: measures training steps beside PyTorch's, in an environment of its own, .venv-peers.

  OUT=FOLDER   the run folder (results/local/<time>-peers)
  NETWORK=mlp,mnist_cnn   networks in bench/networks.json
  RANKS=2      measures data-parallel training steps over that many ranks instead, beside PyTorch
               with DistributedDataParallel over gloo (NETWORK=mnist_cnn)
  INFERENCE=1  measures inference instead, beside PyTorch and ONNX Runtime
  BATCH=1,8,64 THREADS=1,2 BUDGET=…   of its requests
With PRIMITIVE=all_reduce it measures all-reduce in other communication libraries instead; each
MPI library from PyPI is a folder of its own, .venv-peers/libraries/<name>.
  SUITE=sweep RANKS=2 VARIANT=… BUDGET=…   as in make bench
  ONECCL=1     installs and measures oneCCL too (2 GB)
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import runner
from runner import Refused, call, given, variable

PYTHON = "/usr/bin/python3"
ENVIRONMENT = Path(".venv-peers")
REQUIREMENTS = Path("bench/peers/requirements.txt")
LIBRARIES = {"openmpi": ["openmpi"], "mpich": ["mpich"], "intel": ["impi-rt", "impi-devel"]}
ONECCL = ["oneccl-cpu", "oneccl-devel", "impi-devel"]


def text_of(path):
    return path.read_text().rstrip("\n") if path.exists() else ""


def pip_install(folder, *packages):
    return call([folder / "bin/python", "-m", "pip", "install", "--quiet",
                 "--disable-pip-version-check", *packages], None) == 0


def install_environment():
    stamp = ENVIRONMENT / "requirements.sha256"
    version = subprocess.run([PYTHON, "--version"], capture_output=True, check=True).stdout
    wanted = f"{hashlib.sha256(version + REQUIREMENTS.read_bytes()).hexdigest()}  -"
    if text_of(stamp) == wanted:
        return
    print(f"Installing PyTorch and ONNX Runtime into {ENVIRONMENT} (several gigabytes)")
    subprocess.run([PYTHON, "-m", "venv", "--clear", ENVIRONMENT], check=True)
    if pip_install(ENVIRONMENT, "-r", REQUIREMENTS):
        stamp.write_text(wanted + "\n")
    elif variable("PRIMITIVE") == "all_reduce":
        (ENVIRONMENT / "unavailable").write_text("pip could not install PyTorch\n")
    else:
        raise Refused("pip could not install PyTorch and ONNX Runtime. No other target "
                      "needs them.")


def install(library, packages):
    """Into the folder of that library, unless they are there.

    What fails leaves the reason in it, and the row of the library shows it.
    """
    folder, names = ENVIRONMENT / "libraries" / library, " ".join(packages)
    if text_of(folder / "packages") == names:
        return
    print(f"Installing {names} into {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    if call([PYTHON, "-m", "venv", folder], None) == 0 and pip_install(folder, *packages):
        (folder / "packages").write_text(names + "\n")
        (folder / "unavailable").unlink(missing_ok=True)
    else:
        (folder / "unavailable").write_text(f"pip could not install {names}\n")


def install_mpich():
    """MPICH beside Open MPI, called as mpirun.mpich.

    mpirun and mpicc stay Open MPI's, whose alternatives have the higher priority.
    """
    if shutil.which("mpicc.mpich") or not shutil.which("apt-get"):
        return
    as_root = []
    if os.getuid() != 0:
        if not shutil.which("sudo") or call(["sudo", "-n", "true"], subprocess.DEVNULL):
            return
        as_root = ["sudo", "-n"]
    print("Installing mpich and libmpich-dev")
    install_packages = ["apt-get", "-o", "DPkg::Lock::Timeout=120", "-qq", "install", "-y",
                        "--no-install-recommends", "mpich", "libmpich-dev"]
    if subprocess.run([*as_root, "env", "DEBIAN_FRONTEND=noninteractive", *install_packages],
                      stdout=subprocess.DEVNULL, check=False).returncode:
        print("  apt-get could not install them")


def all_reduce(python, program, out):
    runner.allow_mpi_as_root()
    install_mpich()
    for library, packages in LIBRARIES.items():
        install(library, packages)
    oneccl = ENVIRONMENT / "libraries/oneccl"
    if variable("ONECCL") == "1":
        install("oneccl", ONECCL)
    elif not (oneccl / "packages").exists():
        oneccl.mkdir(parents=True, exist_ok=True)
        (oneccl / "unavailable").write_text("not installed, 2 GB: ONECCL=1 installs it\n")
    return [python, "bench/peers/all_reduce.py", "--program", program,
            "--libraries", f"{ENVIRONMENT}/libraries",
            "--build", f"{variable('BUILD', 'build')}/peers",
            "--suite", variable("SUITE", "sweep"), "--ranks", variable("RANKS", "2"),
            "--variant", variable("VARIANT"), *given(("BUDGET", "--budget")), "--out", out]


def main():
    if variable("PRIMITIVE", "all_reduce") != "all_reduce":
        raise Refused(f"PRIMITIVE={variable('PRIMITIVE')}: only all_reduce has peers of its own; "
                      "without it training is measured")
    install_environment()
    python, program = f"{ENVIRONMENT}/bin/python", runner.program_path()
    out = runner.new_folder(after="-peers")
    if variable("PRIMITIVE"):
        command = all_reduce(python, program, out)
        os.execv(command[0], command)
    if variable("INFERENCE") == "1":
        inference = [python, "bench/peers/inference.py", "--program", program, "--out", out,
                     *given(("NETWORK", "--networks"), ("BATCH", "--batch"),
                            ("THREADS", "--threads"), ("BUDGET", "--seconds"))]
        os.execv(inference[0], inference)
    steps = [python, "bench/peers/run.py", "--program", program, "--out", out,
             *given(("NETWORK", "--networks"), ("RANKS", "--ranks"))]
    os.execv(steps[0], steps)


if __name__ == "__main__":
    runner.main("peers", main, status=1)
