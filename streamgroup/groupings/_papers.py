"""The papers that groupings are from, by the numbers of docs/references.md; a grouping names its own in `CITE`."""

from typing import NamedTuple

__all__ = ["PAPERS", "Paper"]


class Paper(NamedTuple):
    """What a bibliography needs: `name` is its key in BibTeX, `venue` "" where it is not known."""

    name: str
    title: str
    authors: tuple[str, ...]
    venue: str
    year: int | None

    def bibtex(self) -> str:
        """Return the entry in BibTeX."""
        fields = {
            "title": f"{{{self.title}}}",
            "author": " and ".join(self.authors),
            "booktitle" if self.venue.isupper() else "howpublished": self.venue,
            "year": "" if self.year is None else str(self.year),
        }
        kind = "inproceedings" if self.venue.isupper() else "misc"
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        return "\n".join([f"@{kind}{{{self.name},", *lines, "}"])


PAPERS = {
    "000": Paper("fish", "Efficient Time-Evolving Stream Processing at Scale", (), "arXiv 1806.00760", 2018),
    "001": Paper(
        "nasir2016two",
        "When Two Choices Are not Enough: Balancing at Scale in Distributed Stream Processing",
        ("M. A. U. Nasir", "G. De Francisci Morales", "N. Kourtellis", "M. Serafini"),
        "ICDE",
        2016,
    ),
    "002": Paper(
        "chen-dstream",
        "Popularity-aware Differentiated Distributed Stream Processing on Skewed Streams",
        ("H. Chen", "F. Zhang", "H. Jin"),
        "",
        None,
    ),
    "003": Paper(
        "dalabasmaz-dkg",
        "Dynamic Key Grouping: A Load Balancing Algorithm for Distributed Stream Processing Engines",
        ("O. Dalabasmaz", "A. B. Can"),
        "",
        None,
    ),
    "004": Paper(
        "rivetti2015posg",
        "Proactive Online Scheduling for Shuffle Grouping in Distributed Stream Processing Systems",
        ("N. Rivetti", "E. Anceaume", "Y. Busnel", "L. Querzoni", "B. Sericola"),
        "Research report hal-01246701",
        2015,
    ),
    "PKG": Paper(
        "nasir2015pkg",
        "The Power of Both Choices: Practical Load Balancing for Distributed Stream Processing Engines",
        ("M. A. U. Nasir", "G. De Francisci Morales", "D. García-Soriano", "N. Kourtellis", "M. Serafini"),
        "ICDE",
        2015,
    ),
    "DEBS": Paper(
        "rivetti2015dkg",
        "Efficient Key Grouping for Near-Optimal Load Balancing in Stream Processing Systems",
        ("N. Rivetti", "L. Querzoni", "E. Anceaume", "Y. Busnel", "B. Sericola"),
        "DEBS",
        2015,
    ),
    "CG": Paper(
        "nasir2017cg",
        "Load Balancing for Skewed Streams on Heterogeneous Cluster",
        (
            "M. A. U. Nasir", "H. Horii", "M. Serafini", "N. Kourtellis", "R. Raymond", "S. Girdzijauskas",
            "T. Osogami",
        ),
        "arXiv 1705.09073",
        2017,
    ),
    "CHBL": Paper(
        "mirrokni2018bounded",
        "Consistent Hashing with Bounded Loads",
        ("V. Mirrokni", "M. Thorup", "M. Zadimoghaddam"),
        "SODA",
        2018,
    ),
    "HVP": Paper(
        "katsipoulakis2017holistic",
        "A Holistic View of Stream Partitioning Costs",
        ("N. R. Katsipoulakis", "A. Labrinidis", "P. K. Chrysanthis"),
        "PVLDB",
        2017,
    ),
    "DAG": Paper(
        "pacaci2018distribution",
        "Distribution-Aware Stream Partitioning for Distributed Stream Processing Systems",
        ("A. Pacaci", "M. T. Özsu"),
        "BeyondMR at SIGMOD",
        2018,
    ),
    "DALTON": Paper(
        "zapridou2022dalton",
        "Dalton: Learned Partitioning for Distributed Data Streams",
        ("E. Zapridou", "I. Mytilinis", "A. Ailamaki"),
        "PVLDB",
        2022,
    ),
}  # fmt: skip
