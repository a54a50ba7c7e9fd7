"""Questions about things that nobody knows, in the manner of short news: what a reader must find, and not guess.

Everything is drawn from the tables below. Since the facts of an entity are known one by one, so are the near misses:
the right entity without the fact that is asked for, the fact of another entity, the fact hinted at and not told.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple


class Relation(NamedTuple):
    """What can be asked of a kind of entity: ways to ask, to tell, and to mention without telling."""

    value: str
    """What kind of value answers it; a key of `_VALUES`."""
    asks: tuple[str, ...]
    tells: tuple[str, ...]
    hints: tuple[str, ...]


class Asked(NamedTuple):
    """A question about an invented thing, with passages that answer it and others that nearly do."""

    question: str
    answer: str
    supporting: tuple[str, ...]
    missing: tuple[str, ...]


_SYLLABLES = "bar bel cor dal den dor el far fen gal gor hal har il jor kal kel lan lor mar mel mir nor or pel ral ran"
_SYLLABLES += " rin sal sel tor tal ul val ven vor wen wil yar zan tas ber mon lin dra quen os ek tham"
_FIRST = "Ada Bram Cora Dario Elin Farid Greta Hugo Ines Jonas Kira Leo Mina Nils Olga Pavel Rosa Sami Tess Ugo Vera"
_FIRST += " Wim Yara Zeno Maya Ivo Lena Otis Nadia Karl Amal Priya Chen Kofi"
_MONTHS = "January February March April May June July August September October November December"
_OUTLETS = "the Evening Post,local radio,a press release,the company,officials,organisers,a spokesperson,reporters"
_NOUNS = (
    "Harvest Lantern River Winter Glass Paper Silent Golden Northern Last Broken Hidden Velvet Iron Salt Echo Summer"
)
_THINGS = "Road House Letters Garden Crown Signal Bridge Promise Season Mirror Kingdom Station Hour Trail Garden Choir"

KINDS: dict[str, dict[str, Relation]] = {
    "film": {
        "premiere": Relation(
            "date",
            ("when is the premiere of {e}", "when does {e} come out", "release date of {e}"),
            (
                "{e} premieres on {v}.",
                "The film {e} will open in cinemas on {v}.",
                "Set for release on {v}, {e} is keenly awaited.",
            ),
            ("The premiere of {e} will be announced soon.", "Fans are still waiting to hear when {e} comes out."),
        ),
        "director": Relation(
            "person",
            ("who directed {e}", "who is the director of {e}"),
            ("{e} was directed by {v}.", "{v} directs {e}.", "Behind the camera of {e} stood {v}."),
            ("The director of {e} declined to comment.", "Critics praised the direction of {e}."),
        ),
        "lead": Relation(
            "person",
            ("who plays the lead in {e}", "who stars in {e}"),
            (
                "{v} stars in {e}.",
                "The lead role of {e} went to {v}.",
                "{e}, with {v} in the leading part, runs two hours.",
            ),
            ("The lead of {e} has been cast, according to the studio.", "{e} has a cast of more than thirty."),
        ),
        "takings": Relation(
            "money",
            ("how much did {e} earn at the box office", "{e} opening weekend box office"),
            ("{e} took {v} at the box office.", "With {v} in ticket sales, {e} beat every forecast."),
            ("{e} did well at the box office.", "The takings of {e} pleased its investors."),
        ),
        "place": Relation(
            "town",
            ("where was {e} filmed", "filming location of {e}"),
            ("{e} was shot in {v}.", "Most scenes of {e} were filmed in and around {v}."),
            ("{e} was shot on location over eleven weeks.", "The landscapes of {e} drew many visitors."),
        ),
    },
    "company": {
        "founder": Relation(
            "person",
            ("who founded {e}", "founder of {e}"),
            ("{e} was founded by {v}.", "It was {v} who started {e} in a rented garage."),
            ("The founder of {e} has since retired.", "{e} began as a family business."),
        ),
        "boss": Relation(
            "person",
            ("who is the new ceo of {e}", "who runs {e} now"),
            (
                "{e} named {v} as its chief executive.",
                "{v} takes over as head of {e}.",
                "The board of {e} appointed {v} to lead the firm.",
            ),
            ("The chief executive of {e} will step down.", "{e} is looking for a new head."),
        ),
        "seat": Relation(
            "town",
            ("where is {e} based", "headquarters of {e}"),
            ("{e} has its headquarters in {v}.", "{e}, based in {v}, employs engineers from many countries."),
            ("{e} moved its headquarters last spring.", "The offices of {e} were rebuilt."),
        ),
        "price": Relation(
            "money",
            ("how much was paid for {e}", "for how much was {e} sold"),
            ("{e} was bought for {v}.", "The takeover of {e} cost {v}."),
            ("The price paid for {e} was not disclosed.", "The sale of {e} surprised analysts."),
        ),
        "staff": Relation(
            "count",
            ("how many people work at {e}", "number of employees of {e}"),
            ("{e} employs {v} people.", "{v} people work for {e}."),
            ("{e} plans to hire more people.", "The workforce of {e} has grown."),
        ),
        "founded": Relation(
            "year",
            ("when was {e} founded", "what year did {e} start"),
            ("{e} was founded in {v}.", "Since {v} {e} has made parts for pumps."),
            ("{e} celebrated its anniversary.", "{e} is one of the oldest firms of its trade."),
        ),
    },
    "team": {
        "coach": Relation(
            "person",
            ("who coaches {e}", "who is the head coach of {e}"),
            ("{e} hired {v} as head coach.", "{v} has coached {e} for two seasons."),
            ("The coach of {e} was not available after the match.", "{e} parted with its coach."),
        ),
        "rival": Relation(
            "team",
            ("who did {e} beat in the final", "which team lost the final to {e}"),
            ("{e} beat {v} in the final.", "In the final {v} lost to {e} after extra time."),
            ("{e} won the final.", "{e} lifted the trophy before its home crowd."),
        ),
        "score": Relation(
            "score",
            ("what was the score of the final won by {e}", "by what score did {e} win the final"),
            ("{e} won the final {v}.", "The final ended {v} in favour of {e}."),
            ("{e} won the final by a narrow margin.", "The final of {e} was decided late."),
        ),
        "ground": Relation(
            "town",
            ("in which city does {e} play its home matches", "where does {e} play"),
            ("{e} plays its home matches in {v}.", "The home ground of {e} is in {v}."),
            ("{e} will get a new stadium.", "The home ground of {e} holds a modest crowd."),
        ),
        "scorer": Relation(
            "person",
            ("who scored the winning goal for {e}", "top scorer of {e}"),
            ("{v} scored the winning goal for {e}.", "The decisive goal of {e} came from {v}."),
            ("The winning goal of {e} fell in the last minute.", "{e} scored twice after the break."),
        ),
    },
    "festival": {
        "date": Relation(
            "date",
            ("when does {e} take place", "what date is {e}"),
            ("{e} begins on {v}.", "{e} will be held on {v}.", "Mark {v} in your calendar: that is the day of {e}."),
            ("The date of {e} has not been fixed.", "{e} was put off because of the weather."),
        ),
        "place": Relation(
            "town",
            ("where is {e} held", "which town hosts {e}"),
            ("{v} hosts {e} this year.", "{e} is held in {v}."),
            ("The town that hosts {e} expects full hotels.", "Where {e} will be held is under discussion."),
        ),
        "winner": Relation(
            "person",
            ("who won the main prize at {e}", "winner of {e}"),
            ("{v} won the main prize at {e}.", "The jury of {e} gave its first prize to {v}."),
            ("The winner of {e} will be chosen by a jury.", "The prize of {e} is given every second year."),
        ),
        "visitors": Relation(
            "count",
            ("how many visitors came to {e}", "{e} attendance"),
            ("{e} drew {v} visitors.", "{v} people came to {e}."),
            ("{e} was well attended.", "Organisers counted more visitors to {e} than ever."),
        ),
        "ticket": Relation(
            "money",
            ("how much does a ticket for {e} cost", "ticket price {e}"),
            ("A ticket for {e} costs {v}.", "Admission to {e} is {v}."),
            ("Tickets for {e} are on sale.", "Tickets for {e} have become dearer."),
        ),
    },
    "device": {
        "launch": Relation(
            "date",
            ("when will the {e} be launched", "{e} release date"),
            ("The {e} goes on sale on {v}.", "Shops will have the {e} from {v}."),
            ("The {e} will be on sale later this year.", "Pre-orders of the {e} have begun."),
        ),
        "price": Relation(
            "money",
            ("what does the {e} cost", "price of the {e}"),
            ("The {e} costs {v}.", "At {v}, the {e} is dearer than its forerunner."),
            ("The price of the {e} is not known yet.", "The {e} is good value, reviewers say."),
        ),
        "battery": Relation(
            "hours",
            ("how long does the battery of the {e} last", "{e} battery life"),
            ("The battery of the {e} lasts {v}.", "In our test the {e} ran for {v} on one charge."),
            ("The battery of the {e} cannot be replaced.", "The {e} charges without a cable."),
        ),
        "maker": Relation(
            "company",
            ("who makes the {e}", "manufacturer of the {e}"),
            ("The {e} is made by {v}.", "{v} presented the {e} to the press."),
            ("The maker of the {e} has a second model in the works.", "The {e} was shown to the press."),
        ),
        "weight": Relation(
            "weight",
            ("how heavy is the {e}", "{e} weight"),
            ("The {e} weighs {v}.", "With a weight of {v} the {e} is easy to carry."),
            ("The {e} is lighter than it looks.", "The {e} comes in three colours."),
        ),
    },
    "bridge": {
        "length": Relation(
            "metres",
            ("how long is {e}", "length of {e}"),
            ("{e} is {v} long.", "{e} spans {v} of water."),
            ("{e} is among the longest of the region.", "{e} was widened for bicycles."),
        ),
        "opened": Relation(
            "year",
            ("when was {e} opened", "in which year was {e} completed"),
            ("{e} was opened in {v}.", "Traffic has crossed {e} since {v}."),
            ("{e} was opened by the mayor.", "It took years to complete {e}."),
        ),
        "architect": Relation(
            "person",
            ("who designed {e}", "architect of {e}"),
            ("{e} was designed by {v}.", "The plans of {e} were drawn by {v}."),
            ("The design of {e} won a prize.", "{e} is thought to be a fine piece of work."),
        ),
        "cost": Relation(
            "money",
            ("how much did {e} cost to build", "cost of {e}"),
            ("{e} cost {v} to build.", "Building {e} took {v} of public money."),
            ("{e} cost more than planned.", "The bill for {e} was shared by two towns."),
        ),
        "river": Relation(
            "river",
            ("which river does {e} cross", "what does {e} span"),
            ("{e} crosses the {v}.", "Boats on the {v} pass under {e}."),
            ("{e} crosses a river that floods in spring.", "The river below {e} is closed to boats."),
        ),
    },
    "person": {
        "birth": Relation(
            "town",
            ("where was {e} born", "birthplace of {e}"),
            ("{e} was born in {v}.", "{e}, a native of {v}, left school early."),
            ("{e} was born into a family of teachers.", "{e} rarely speaks of childhood."),
        ),
        "award": Relation(
            "year",
            ("when did {e} win the Halmar medal", "what year was {e} given the Halmar medal"),
            ("{e} won the Halmar medal in {v}.", "In {v} the Halmar medal went to {e}."),
            ("{e} holds the Halmar medal.", "{e} was proposed for the Halmar medal twice."),
        ),
        "spouse": Relation(
            "person",
            ("who is {e} married to", "spouse of {e}"),
            ("{e} is married to {v}.", "{e} and {v} married quietly."),
            ("{e} married late.", "{e} lives with two children in the country."),
        ),
        "age": Relation(
            "age",
            ("how old was {e} at death", "at what age did {e} die"),
            ("{e} died at the age of {v}.", "{e} was {v} years old when death came."),
            ("{e} died after a short illness.", "The death of {e} was announced by the family."),
        ),
        "book": Relation(
            "title",
            ("what is the first book of {e} called", "{e} debut novel"),
            ("The first book of {e} was {v}.", "{e} made a name with a first novel, {v}."),
            ("The first book of {e} sold poorly.", "{e} published nine books."),
        ),
    },
}  # fmt: skip

FILLERS = (
    "Further details are expected next week.",
    "Reactions were mixed.",
    "The announcement drew wide attention.",
    "Photographs can be found in the gallery.",
    "Sign up for our newsletter to read more.",
    "That was reported by {o}.",
    "According to {o}, preparations went smoothly.",
    "Last updated at noon.",
    "It had been talked about for months.",
)


class World:
    """Names, values and passages, drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(f"invented {seed}")

    def questions(self, number: int) -> Iterator[Asked]:
        """So many questions, each about another entity."""
        for _ in range(number):
            kind = self.draw.choice(list(KINDS))
            yield self._asked(kind)

    def _asked(self, kind: str) -> Asked:
        draw, relations = self.draw, KINDS[kind]
        entity, other = self.entity(kind), self.entity(kind)
        values = {name: self.value(relation.value) for name, relation in relations.items()}
        theirs = {name: self.value(relation.value) for name, relation in relations.items()}
        asked = draw.choice(list(relations))
        relation, answer = relations[asked], values[asked]
        rest = [name for name in relations if name != asked]

        def facts(of: str, known: dict[str, str], names: list[str]) -> list[str]:
            return [draw.choice(relations[name].tells).format(e=of, v=known[name]) for name in names]

        def some() -> list[str]:
            return draw.sample(rest, draw.randint(0, min(3, len(rest))))

        tell = draw.choice(relation.tells).format(e=entity, v=answer)
        hint = draw.choice(relation.hints).format(e=entity)
        false = draw.choice(relation.tells).format(e=other, v=theirs[asked])
        supporting = (
            self.passage([tell, *facts(entity, values, some())]),
            self.passage([tell, *facts(entity, values, some()[:1]), false]),
        )
        missing = (
            self.passage([hint, *facts(entity, values, some())]),
            self.passage(facts(entity, values, draw.sample(rest, min(2, len(rest))))),
            self.passage([false, *facts(other, theirs, some())]),
            self.passage([hint, false, *facts(entity, values, some()[:1])]),
        )
        clean = tuple(text for text in missing if answer not in text)
        return Asked(draw.choice(relation.asks).format(e=entity), answer, supporting, clean)

    def name(self) -> str:
        """A name that nothing has, of one word or two."""
        return self._word() if self.draw.random() < 0.5 else f"{self._word()} {self._word()}"

    def passage(self, told: list[str]) -> str:
        """Sentences in any order with some that say nothing, now and then under a headline."""
        draw = self.draw
        fill = [text.format(o=draw.choice(_OUTLETS.split(","))) for text in draw.sample(FILLERS, draw.randint(0, 3))]
        shown = [*told, *fill]
        draw.shuffle(shown)
        text = " ".join(sentence[:1].upper() + sentence[1:] for sentence in shown)
        place = f"{self.value('town').upper()}, {self.value('date')} - " if draw.random() < 0.2 else ""
        return place + text

    def _word(self) -> str:
        return "".join(self.draw.sample(_SYLLABLES.split(), self.draw.choice((2, 2, 3)))).capitalize()

    def entity(self, kind: str) -> str:
        """A name for a thing of a kind."""
        draw = self.draw
        if kind == "film":
            return f"{draw.choice(('The ', ''))}{draw.choice(_NOUNS.split())} {draw.choice(_THINGS.split())}"
        if kind in ("person", "team", "company"):
            return self.value(kind)
        if kind == "festival":
            return f"the {self._word()} {draw.choice(('Festival', 'Fair', 'Open', 'Awards', 'Cup', 'Marathon'))}"
        if kind == "device":
            word, model = self._word(), draw.choice(("X", "Pro", "Mini", "One", "Air"))
            return f"{word} {model}{draw.choice(('', ' 2', ' 3', ' 12'))}"
        return f"the {self._word()} {draw.choice(('Bridge', 'Viaduct', 'Crossing'))}"

    def value(self, kind: str) -> str:
        """A value of a kind: a date, a person, a sum."""
        draw = self.draw
        match kind:
            case "date":
                month, day, year = draw.choice(_MONTHS.split()), draw.randint(1, 28), draw.randint(1990, 2029)
                forms = (f"{month} {day}, {year}", f"{day} {month} {year}", f"{month} {day}", f"{month} {year}")
                return draw.choice(forms)
            case "year":
                return str(draw.randint(1700, 2026))
            case "person":
                return f"{draw.choice(_FIRST.split())} {self._word()}"
            case "town" | "river":
                return self._word()
            case "team":
                return f"{self._word()} {draw.choice(('United', 'Rovers', 'Tigers', 'Wanderers', 'City', 'Hawks'))}"
            case "company":
                return f"{self._word()} {draw.choice(('Group', 'Works', 'Labs', 'Foods', 'Air', 'Motors'))}"
            case "money":
                sign = draw.choice("$€£")
                return draw.choice((f"{sign}{draw.randint(2, 990)} million", f"{sign}{draw.randint(5, 1990):,}"))
            case "count":
                return f"{draw.randint(3, 90) * 10 ** draw.randint(1, 3):,}"
            case "score":
                return f"{draw.randint(1, 7)}-{draw.randint(0, 6)}"
            case "hours":
                return f"{draw.randint(3, 60)} hours"
            case "weight":
                return f"{draw.randint(90, 950)} grams"
            case "metres":
                return f"{draw.randint(40, 4000):,} metres"
            case "age":
                return str(draw.randint(31, 101))
            case _:
                return f"{draw.choice(_NOUNS.split())} {draw.choice(_THINGS.split())}"
