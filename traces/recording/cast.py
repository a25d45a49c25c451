"""The people in the bundled traces: invented by faker, drawn once and kept, so that the traces stay as they are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

SEED = 20_261_130
CAST = Path(__file__).with_name("cast.json")
SIZE = 10


@dataclass(frozen=True, slots=True)
class Person:
    """One invented customer; the e-mail domain is reserved, nobody's mail goes there."""

    customer_id: str
    name: str
    email: str
    street: str
    city: str
    postcode: str

    @property
    def first_name(self) -> str:
        """The name that a model would address."""
        return self.name.split()[0]

    @property
    def address(self) -> dict[str, str]:
        """The postal address as tools take it."""
        return {"name": self.name, "street": self.street, "city": self.city, "postcode": self.postcode}


def read_cast(path: Path = CAST) -> tuple[Person, ...]:
    """The people as they were drawn."""
    return tuple(Person(**entry) for entry in json.loads(path.read_text(encoding="utf-8")))


def draw_cast(path: Path = CAST, *, seed: int = SEED) -> None:
    """Draws people anew; another version of faker may draw others from the same seed."""
    from faker import Faker

    fake = Faker("en_US")
    fake.seed_instance(seed)
    people = []
    for n in range(SIZE):
        name = f"{fake.first_name()} {fake.last_name()}"
        mailbox = name.lower().replace(" ", ".")
        people.append(
            Person(
                customer_id=f"cust-{4100 + n * 17}",
                name=name,
                email=f"{mailbox}@example.com",
                street=fake.street_address(),
                city=fake.city(),
                postcode=fake.postcode(),
            )
        )
    text = json.dumps([asdict(person) for person in people], indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
