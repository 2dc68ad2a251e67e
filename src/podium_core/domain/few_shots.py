"""The four worked examples in the planning prompt: one per shape, on questions far from any training task.

Kept as data and rendered with `render_plan`, so an example can never show a format that the parser refuses.
"""

from dataclasses import dataclass

from podium_core.domain.plan import Access
from podium_core.domain.plan_format import render_plan


@dataclass(frozen=True, slots=True)
class FewShot:
    """One worked example: a question, a pool as the prompt lists it, thoughts, and the plan."""

    question: str
    pool: tuple[str, ...]
    reasoning: str
    model_ids: tuple[int, ...]
    subtasks: tuple[str, ...]
    access: tuple[Access, ...]

    @property
    def plan_text(self) -> str:
        """The three lists, exactly as they should be written."""
        return render_plan(self.model_ids, self.subtasks, self.access)


_ONE_STEP = FewShot(
    question="Which knot should I use to tie a dinghy to a ring on the quay so that it never jams?",
    pool=(
        (
            "Model id 0: accuracy % by skill: everyday facts 61, poetry 88; $2.00 in, $8.00 out per "
            "million tokens"
        ),
        (
            "Model id 1: accuracy % by skill: everyday facts 90, poetry 42; $0.10 in, $0.30 out per "
            "million tokens"
        ),
    ),
    reasoning=(
        "This is one well-known fact. A second opinion would only cost money. Model 1 is the stronger on "
        "facts and also the cheaper, so it answers alone, with the question as it stands."
    ),
    model_ids=(1,),
    subtasks=("",),
    access=(Access(),),
)

_CHAIN = FewShot(
    question=(
        "Write the label for the oldest bowl in our village museum: two sentences that a child of eight "
        "understands. Our notes say: stoneware, ash glaze, kiln on the north slope, about 1640."
    ),
    pool=(
        "Model id 0: accuracy % by skill: plain writing 93, ceramics 35; 60 tokens per second",
        "Model id 1: accuracy % by skill: plain writing 55, ceramics 70; 40 tokens per second",
        "Model id 2: accuracy % by skill: plain writing 48, ceramics 91; 35 tokens per second",
    ),
    reasoning=(
        "Two different talents are needed, one after the other: somebody who knows pottery has to say "
        "what the notes mean, then somebody who writes plainly has to put it in a child's words. Model 2 "
        "knows ceramics best, model 0 writes best. The writer needs to see what the expert said."
    ),
    model_ids=(2, 0),
    subtasks=(
        (
            "Explain what each of the notes about the bowl means: the clay, how an ash glaze comes about, "
            "why a kiln stands on a slope. Say which of these a visitor can see on the bowl. Facts only."
        ),
        (
            "From the facts you were given, write the label: exactly two sentences, no technical term, "
            "nothing that is not in the facts. Give only the label."
        ),
    ),
    access=(Access(), Access((0,))),
)

_TREE = FewShot(
    question=(
        "The lower leaves of my lemon tree turn yellow between veins that stay green. It stands indoors, "
        "I water it with hard tap water, and I moved it to fresh soil in spring. What should I do?"
    ),
    pool=(
        "Model id 0: accuracy % by skill: plant care 74, weighing evidence 58",
        "Model id 1: accuracy % by skill: plant care 71, weighing evidence 62",
        "Model id 2: accuracy % by skill: plant care 40, weighing evidence 89",
        "Model id 3: accuracy % by skill: plant care 22, weighing evidence 30",
    ),
    reasoning=(
        "Several causes fit these signs, and a single expert may settle on the first one. Models 0 and 1 "
        "are about equally good with plants, so they should judge independently, without seeing each "
        "other. Model 2 is weaker on plants but best at weighing evidence: it should compare both and "
        "decide. Model 3 adds nothing."
    ),
    model_ids=(0, 1, 2),
    subtasks=(
        (
            "Work from the leaves: list the shortages and diseases that yellow a citrus leaf between "
            "green veins, and for each say whether old or young leaves show it first. Name the likeliest "
            "here."
        ),
        (
            "Work from the care: say what hard water, fresh soil and a place indoors each do to a citrus "
            "tree over months, and which sign each would leave. Name the likeliest cause here."
        ),
        (
            "Two diagnoses were made separately. Where they differ, say which one the described signs "
            "support. Then tell the owner, in order, what to do this week and what to look for "
            "afterwards."
        ),
    ),
    access=(Access(), Access(), Access((0, 1))),
)

_REVIEWED = FewShot(
    question=(
        "Unser Chor singt an einem Abend fünf Stücke: zwei a cappella, eins mit Orgel, eins mit "
        "Streichern und ein stilles zum Schluss. Ohne Begleitung sinken wir mit der Zeit ab. Plane "
        "Reihenfolge und Pausen."
    ),
    pool=(
        "Model id 0: accuracy % by skill: scheduling 82, music practice 45, German 80",
        "Model id 1: accuracy % by skill: scheduling 50, music practice 88, German 84",
        "Model id 2: accuracy % by skill: scheduling 66, music practice 60, German 95",
    ),
    reasoning=(
        "First the musical conditions have to be clear, since everything else follows from them: model 1. "
        "Then a schedule: model 0. A schedule that looks good on paper may still break a musical "
        "condition, so the musician checks it, seeing both. At the end model 2 writes it out in the "
        "user's language, from the schedule and the objections only."
    ),
    model_ids=(1, 0, 1, 2),
    subtasks=(
        (
            "Nenne die Bedingungen, die sich aus den fünf Stücken ergeben: Absinken ohne Begleitung, "
            "Umbau für Orgel und Streicher, Ruhe vor dem letzten Stück. Noch keine Reihenfolge."
        ),
        (
            "Stelle aus den Bedingungen eine Reihenfolge mit Uhrzeiten und Pausen auf und begründe jede "
            "Pause knapp."
        ),
        "Prüfe die Reihenfolge gegen jede einzelne Bedingung. Nenne nur Verstöße und je eine Änderung.",
        (
            "Schreibe den endgültigen Ablauf für den Chor: die Reihenfolge mit eingearbeiteten "
            "Änderungen, ein Satz je Stück, ohne die Vorarbeit zu erwähnen."
        ),
    ),
    access=(Access(), Access((0,)), Access((0, 1)), Access((1, 2))),
)

FEW_SHOTS = (_ONE_STEP, _CHAIN, _TREE, _REVIEWED)
"""Shapes: one step, chain, independent attempts with a judge, draft with a review. In this order."""
