#!/usr/bin/env python3
"""The exchange between ranks, within hosts and between them: tests/programs/exchange_calls at 1 to 9 ranks."""
import os

import tap

PROGRAM = os.path.join(tap.BUILD, "tests", "programs", "exchange_calls")
ROUNDS = 10000
CORES = len(os.sched_getaffinity(0))

for ranks in (1, 2, 3, 5, 7, 9):
    rounds = ROUNDS if ranks <= max(CORES, 3) else ROUNDS // 4  # ranks that share cores are slow
    tap.relay(f"{ranks} rank{'s' if ranks > 1 else ''}", ranks, PROGRAM, rounds, least=20)
tap.done()
