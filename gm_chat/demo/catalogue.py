"""The demo's vocabulary: real materials with their densities, invented companies, kinds of parts. Plain values only."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CITIES",
    "CODENAMES",
    "COUNTRIES",
    "FIRST_CUSTOMERS",
    "INDUSTRIES",
    "LEGAL_FORMS",
    "MACHINES",
    "MATERIALS",
    "MODULES",
    "PART_KINDS",
    "SURNAMES",
    "TRADES",
    "WAREHOUSES",
    "MaterialRow",
    "PartKind",
]


@dataclass(frozen=True, slots=True)
class MaterialRow:
    """A material: its number in the standard, density in g/cm3, tensile strength in MPa (``None``: not known)."""

    name: str
    standard: str
    category: str
    density: str
    strength: int | None


@dataclass(frozen=True, slots=True)
class PartKind:
    """A kind of part: how it is numbered and named, what it is made of, and its size.

    ``sizes`` are two ranges (first, last, step) in mm; ``pattern`` shows them as ``{0}``, ``{1}`` and their sum
    ``{2}``. ``volume`` gives mm3 for the two sizes, ``price`` is a base in EUR plus EUR per kg, ``share`` a weight.
    """

    prefix: str
    category: str
    pattern: str
    materials: tuple[str, ...]
    sizes: tuple[tuple[int, int, int], tuple[int, int, int]]
    volume: Callable[[int, int], float]
    price: tuple[float, float]
    share: int


def _rod(diameter: int, length: int) -> float:
    return pi / 4 * diameter**2 * length


def _screw(diameter: int, length: int) -> float:
    return _rod(diameter, length) * 0.85 + _rod(diameter * 3 // 2, diameter) * 0.8


def _tube(inner: float, outer: float, length: float) -> float:
    return pi / 4 * (outer**2 - inner**2) * length


def _bearing(bore: int, wall: int) -> float:
    return _tube(bore, bore + wall, wall * 0.4) * 0.75


def _bush(bore: int, length: int) -> float:
    return _tube(bore, bore * 1.3, length)


def _ring(bore: int, wall: int) -> float:
    return _tube(bore, bore + wall, 8) * 0.5


def _o_ring(bore: int, cord: int) -> float:
    return pi * (bore + cord) * pi / 4 * cord**2


def _gear(module: int, teeth: int) -> float:
    return _rod(module * teeth, module * 10) * 0.8


def _pulley(diameter: int, width: int) -> float:
    return _rod(diameter, width) * 0.7


def _casting(length: int, height: int) -> float:
    return length * height * min(length, height) * 0.14


def _plate(length: int, width: int) -> float:
    return length * width * 15 * 0.95


def _sheet(length: int, width: int) -> float:
    return length * width * 4 * 0.9


def _extrusion(edge: int, length: int) -> float:
    return edge**2 * length * 0.25


def _spring(diameter: int, length: int) -> float:
    return pi * diameter * (length / (diameter * 0.25)) * pi / 4 * (diameter * 0.12) ** 2


def _bar(width: int, length: int) -> float:
    return width * max(width // 10, 3) * length


MATERIALS: Final = (
    MaterialRow("Aluminium 6061-T6", "EN AW-6061", "aluminium", "2.70", 310),
    MaterialRow("Aluminium 6082-T6", "EN AW-6082", "aluminium", "2.70", 340),
    MaterialRow("Aluminium 7075-T6", "EN AW-7075", "aluminium", "2.81", 570),
    MaterialRow("Aluminium 2024-T3", "EN AW-2024", "aluminium", "2.78", 480),
    MaterialRow("Aluminium 5083-H111", "EN AW-5083", "aluminium", "2.66", 275),
    MaterialRow("Cast aluminium AlSi10Mg", "EN AC-43000", "aluminium", "2.65", 240),
    MaterialRow("Structural steel S235JR", "1.0038", "steel", "7.85", 360),
    MaterialRow("Structural steel S355J2", "1.0577", "steel", "7.85", 510),
    MaterialRow("Carbon steel C45", "1.0503", "steel", "7.85", 630),
    MaterialRow("Quenched steel 42CrMo4", "1.7225", "steel", "7.83", 1000),
    MaterialRow("Case-hardening steel 16MnCr5", "1.7131", "steel", "7.80", 900),
    MaterialRow("Bearing steel 100Cr6", "1.3505", "steel", "7.81", 2000),
    MaterialRow("Spring steel 51CrV4", "1.8159", "steel", "7.84", 1350),
    MaterialRow("Free-cutting steel 11SMnPb30", "1.0718", "steel", "7.85", 460),
    MaterialRow("Tool steel X153CrMoV12", "1.2379", "steel", "7.70", 2100),
    MaterialRow("Stainless steel 304", "1.4301", "stainless_steel", "7.90", 520),
    MaterialRow("Stainless steel 316L", "1.4404", "stainless_steel", "7.98", 500),
    MaterialRow("Stainless steel 420", "1.4021", "stainless_steel", "7.75", 700),
    MaterialRow("Stainless steel 17-4PH", "1.4542", "stainless_steel", "7.80", 1070),
    MaterialRow("Grey cast iron GJL-250", "EN-GJL-250", "cast_iron", "7.20", 250),
    MaterialRow("Ductile cast iron GJS-400", "EN-GJS-400-15", "cast_iron", "7.10", 400),
    MaterialRow("Brass CuZn39Pb3", "CW614N", "copper_alloy", "8.47", 430),
    MaterialRow("Tin bronze CuSn12", "CC483K", "copper_alloy", "8.80", 260),
    MaterialRow("Copper Cu-ETP", "CW004A", "copper_alloy", "8.94", 220),
    MaterialRow("Titanium Ti-6Al-4V", "3.7165", "titanium", "4.43", 950),
    MaterialRow("Polyamide PA6", "PA6", "plastic", "1.14", 80),
    MaterialRow("Polyacetal POM-C", "POM-C", "plastic", "1.41", 67),
    MaterialRow("Polyether ether ketone PEEK", "PEEK", "plastic", "1.31", 100),
    MaterialRow("Polytetrafluoroethylene PTFE", "PTFE", "plastic", "2.17", 25),
    MaterialRow("Polyethylene PE-UHMW", "PE-UHMW", "plastic", "0.93", 40),
    MaterialRow("Nitrile rubber NBR 70", "NBR", "elastomer", "1.22", None),
    MaterialRow("Fluoroelastomer FKM 75", "FKM", "elastomer", "1.85", None),
)

PART_KINDS: Final = (
    PartKind(
        "FST", "fastener", "Socket head screw M{0}x{1}", ("1.7225", "1.4301"),
        ((4, 24, 2), (16, 160, 4)), _screw, (0.08, 9.0), 9,
    ),
    PartKind(
        "FST", "fastener", "Parallel pin {0}x{1}", ("1.3505", "1.4021"),
        ((3, 20, 1), (10, 100, 5)), _rod, (0.15, 11.0), 5,
    ),
    PartKind(
        "BRG", "bearing", "Deep groove ball bearing {0}x{2}", ("1.3505",),
        ((10, 90, 5), (20, 80, 5)), _bearing, (3.2, 14.0), 7,
    ),
    PartKind(
        "BRG", "bearing", "Plain bearing bush {0}x{1}", ("CC483K", "POM-C", "PTFE"),
        ((8, 80, 2), (10, 120, 5)), _bush, (1.1, 30.0), 5,
    ),
    PartKind(
        "SHF", "shaft", "Drive shaft {0}x{1}", ("1.7225", "1.0503", "1.4542"),
        ((16, 90, 2), (120, 1200, 20)), _rod, (14.0, 6.5), 8,
    ),
    PartKind(
        "SHF", "shaft", "Spindle {0}x{1}", ("1.7131", "1.4021"),
        ((12, 60, 2), (80, 800, 20)), _rod, (24.0, 9.0), 4,
    ),
    PartKind(
        "GEA", "gear", "Spur gear m{0} z{1}", ("1.7131", "1.0503", "PA6"),
        ((1, 6, 1), (16, 96, 2)), _gear, (9.0, 12.0), 6,
    ),
    PartKind(
        "GEA", "gear", "Timing pulley {0}x{1}", ("EN AW-2024", "EN AW-6082"),
        ((20, 180, 5), (10, 60, 5)), _pulley, (6.0, 22.0), 5,
    ),
    PartKind(
        "HSG", "housing", "Gearbox housing {0}x{1}", ("EN-GJL-250", "EN AC-43000", "EN-GJS-400-15"),
        ((120, 600, 20), (100, 500, 20)), _casting, (60.0, 4.2), 6,
    ),
    PartKind(
        "HSG", "housing", "Bearing housing {0}x{1}", ("EN-GJS-400-15", "EN AW-7075"),
        ((60, 260, 10), (40, 200, 10)), _casting, (18.0, 7.0), 5,
    ),
    PartKind(
        "PLT", "plate", "Mounting plate {0}x{1}", ("EN AW-6082", "1.0038", "1.4301"),
        ((80, 900, 20), (60, 700, 20)), _plate, (8.0, 7.5), 9,
    ),
    PartKind(
        "PLT", "plate", "Wear plate {0}x{1}", ("1.2379", "PE-UHMW"),
        ((60, 500, 20), (40, 300, 10)), _plate, (9.0, 11.0), 4,
    ),
    PartKind(
        "PRF", "profile", "Profile {0}x{0} length {1}", ("EN AW-6061", "EN AW-6082"),
        ((20, 160, 10), (200, 3000, 50)), _extrusion, (4.0, 11.0), 7,
    ),
    PartKind(
        "BRK", "bracket", "Sensor bracket {0}x{1}", ("1.4301", "EN AW-5083"),
        ((30, 160, 5), (20, 120, 5)), _sheet, (3.0, 18.0), 6,
    ),
    PartKind(
        "SEA", "seal", "Radial shaft seal {0}x{2}", ("NBR", "FKM"),
        ((10, 120, 5), (12, 30, 2)), _ring, (1.4, 60.0), 6,
    ),
    PartKind(
        "SEA", "seal", "O-ring {0}x{1}", ("NBR", "FKM", "PTFE"),
        ((5, 250, 5), (2, 8, 1)), _o_ring, (0.06, 45.0), 5,
    ),
    PartKind(
        "SPR", "spring", "Compression spring {0}x{1}", ("1.8159", "1.4301"),
        ((5, 60, 1), (20, 240, 5)), _spring, (0.5, 24.0), 4,
    ),
    PartKind(
        "NOZ", "nozzle", "Dosing nozzle {0}x{1}", ("1.4404", "PEEK", "3.7165"),
        ((6, 40, 2), (20, 120, 5)), _bush, (22.0, 90.0), 4,
    ),
    PartKind(
        "FIT", "fitting", "Pipe fitting {0}x{1}", ("CW614N", "1.4404"),
        ((8, 60, 2), (15, 120, 5)), _bush, (2.1, 17.0), 5,
    ),
    PartKind(
        "BUS", "busbar", "Busbar {0}x{1}", ("CW004A",),
        ((10, 100, 5), (150, 1500, 50)), _bar, (5.0, 13.0), 3,
    ),
)  # fmt: skip

CITIES: Final = {
    "Germany": ("Stuttgart", "Nuremberg", "Bielefeld", "Chemnitz", "Augsburg", "Kassel"),
    "Austria": ("Linz", "Graz", "Dornbirn"),
    "Switzerland": ("Winterthur", "Solothurn", "Biel"),
    "Italy": ("Bologna", "Modena", "Brescia", "Vicenza"),
    "France": ("Lyon", "Grenoble", "Nantes"),
    "United Kingdom": ("Leeds", "Sheffield", "Coventry"),
    "Sweden": ("Gothenburg", "Eskilstuna"),
    "Netherlands": ("Eindhoven", "Enschede"),
    "Poland": ("Poznan", "Katowice", "Rzeszow"),
    "Czechia": ("Brno", "Plzen"),
    "United States": ("Milwaukee", "Cleveland", "Grand Rapids"),
    "Japan": ("Nagoya", "Hamamatsu"),
}
COUNTRIES: Final = (
    ("Germany", 14), ("Italy", 7), ("Austria", 4), ("Switzerland", 5), ("France", 5), ("United Kingdom", 5),
    ("Sweden", 3), ("Netherlands", 4), ("Poland", 5), ("Czechia", 4), ("United States", 5), ("Japan", 3),
)  # fmt: skip
LEGAL_FORMS: Final = {
    "Germany": "GmbH", "Austria": "GmbH", "Switzerland": "AG", "Italy": "S.p.A.", "France": "SAS",
    "United Kingdom": "Ltd", "Sweden": "AB", "Netherlands": "B.V.", "Poland": "Sp. z o.o.", "Czechia": "s.r.o.",
    "United States": "Inc.", "Japan": "K.K.",
}  # fmt: skip
SURNAMES: Final = {
    "Germany": ("Hartwig", "Brandtner", "Kessling", "Vollmar", "Reinacher", "Ostermeyer", "Falkenau", "Dornbusch"),
    "Austria": ("Pichlmair", "Hinterleitner", "Grabner"),
    "Switzerland": ("Aebischer", "Zumstein", "Rothlin"),
    "Italy": ("Bertolazzi", "Cavicchi", "Montanelli", "Sforzini"),
    "France": ("Delaunoy", "Marchandeau", "Rivoire"),
    "United Kingdom": ("Thackeray", "Ashdown", "Ellerby"),
    "Sweden": ("Lindhagen", "Sandelin"),
    "Netherlands": ("Verhoeff", "Dijkema"),
    "Poland": ("Wolanski", "Kmiecik", "Borowicz"),
    "Czechia": ("Hruskova", "Vondrak"),
    "United States": ("Kettering", "Halloway", "Brightwater"),
    "Japan": ("Morishita", "Takanawa"),
}
TRADES: Final = (
    "Precision Parts", "Castings", "Bearings", "Fasteners", "Drive Technology", "Plastics", "Sealing Systems",
    "Sheet Metal", "Turned Parts", "Metals",
)  # fmt: skip
INDUSTRIES: Final = (
    ("food", "Foods"), ("food", "Dairy"), ("food", "Bakery"), ("beverages", "Brewery"), ("beverages", "Beverages"),
    ("pharma", "Pharma"), ("pharma", "Laboratories"), ("cosmetics", "Cosmetics"), ("logistics", "Logistics"),
    ("chemicals", "Chemicals"),
)  # fmt: skip
FIRST_CUSTOMERS: Final = (
    ("Acme Packaging Ltd", "Leeds", "United Kingdom", "food"),
    ("Globex Pharma AG", "Winterthur", "Switzerland", "pharma"),
    ("Initech Beverages Inc.", "Milwaukee", "United States", "beverages"),
)
CODENAMES: Final = (
    "Apollo", "Mercury", "Gemini", "Orion", "Vega", "Altair", "Rigel", "Sirius", "Polaris", "Antares", "Castor",
    "Pollux", "Deneb", "Capella", "Arcturus", "Spica", "Regulus", "Aldebaran", "Bellatrix", "Mimosa", "Procyon",
    "Achernar", "Canopus",
    "Fomalhaut", "Mizar", "Alcor", "Electra", "Maia", "Merope", "Atlas",
)  # fmt: skip
MACHINES: Final = (
    "case packer", "tray sealer", "palletizer", "bottle filler", "cartoner", "labelling machine", "blister line",
    "flow wrapper", "capping machine", "checkweigher",
)  # fmt: skip
MODULES: Final = (
    "Base frame", "Infeed conveyor", "Drive unit", "Gripper head", "Filling station", "Sealing station", "Lifting axis",
    "Outfeed conveyor", "Guarding", "Control cabinet", "Format set",
)  # fmt: skip
WAREHOUSES: Final = (
    ("KS1", "Central warehouse", "Kassel"),
    ("KS2", "Assembly hall store", "Kassel"),
    ("LNZ", "Spare parts store", "Linz"),
    ("BOL", "Service depot south", "Bologna"),
    ("MKE", "Service depot America", "Milwaukee"),
)
