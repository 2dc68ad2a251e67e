"""What a benchmark run has to say: tables for the terminal and the same tables as a page."""

from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table as RichTable


@dataclass(frozen=True, slots=True)
class Table:
    """One table: every cell is text already; the first column is words, the others figures."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def show(self, console: Console) -> None:
        """Print it."""
        table = RichTable(title=self.title, title_justify="left")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)
        if self.note:
            console.print(self.note + "\n")

    def markdown(self) -> str:
        """Return it as Markdown."""
        head = f"| {' | '.join(self.columns)} |\n|{'|'.join('---' for _ in self.columns)}|\n"
        body = "".join(f"| {' | '.join(row)} |\n" for row in self.rows)
        note = f"\n{self.note}\n" if self.note else ""
        return f"## {self.title}\n\n{head}{body}{note}"


@dataclass(slots=True)
class Report:
    """Shows each table as it is measured and keeps it for the page."""

    console: Console
    tables: list[Table] = field(default_factory=list)

    def add(self, table: Table) -> None:
        """Show and keep a table."""
        table.show(self.console)
        self.tables.append(table)

    def page(self, preface: str) -> str:
        """Return the whole page."""
        return preface + "\n" + "\n".join(table.markdown() for table in self.tables)
