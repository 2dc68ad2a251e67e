"""`python -m podium_demo.measure`: prints the measured skills of every specialist, as a card needs them."""

import sys
import time

from podium_demo.answer import SPECIALISTS
from podium_demo.measure.grade import measure
from podium_demo.measure.items import MAKERS


def main() -> None:
    """Measure everything and print one line per specialist and skill."""
    for model, specialist in SPECIALISTS.items():
        for skill in MAKERS:
            score = measure(specialist, skill, time.thread_time_ns)
            sys.stdout.write(
                f"{model:16} {skill:11} accuracy {score.right / score.sample_count:.3f} "
                f"n {score.sample_count} declined {score.declined} wrong {score.wrong}\n"
            )


if __name__ == "__main__":
    main()
