"""One of the processes of a run: started by the test with torch's launcher. Prints what `train` returned."""

import sys
from dataclasses import replace
from pathlib import Path

from podium_train.learning.collapse import CollapseLimits
from podium_train.learning.grpo_recipe import SMALL_CPU
from podium_train.learning.trl_engine import train
from tests.train_real.worlds import Judged, length, tasks

# Every completion hits the cap, so the alarm rings after the second iteration.
RECIPE = replace(
    SMALL_CPU, iterations=4, rollouts=2, pass_size=1, completion_tokens=2, context_tokens=16_384, autocast_bf16=False,
    checkpoint_every=4, limits=CollapseLimits(window=1, grace=1, max_clipped_share=0.5),
)  # fmt: skip

if __name__ == "__main__":
    model, out = map(Path, sys.argv[1:])
    trained = train(RECIPE, model, tasks(), Judged(length), out)
    print(f"done after {trained.iterations}: {trained.alarm}", flush=True)
