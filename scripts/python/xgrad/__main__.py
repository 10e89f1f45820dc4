"""Runs the programs, and prints the folders of the C++ library."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = {"--cmakedir": "lib/cmake/xgrad", "--pkgconfigdir": "lib/pkgconfig", "--includedir": "include"}


def run(name):
    os.execv(os.path.join(HERE, "bin", name), [name, *sys.argv[1:]])


def train():
    run("xgrad")


def learn():
    run("xgrad-learn")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in FOLDERS:
        sys.exit("usage: python -m xgrad " + " | ".join(FOLDERS))
    print(os.path.join(HERE, FOLDERS[sys.argv[1]]))
