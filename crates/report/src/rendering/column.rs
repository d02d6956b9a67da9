//! Tables for other programs. A column is its name, what it holds, and how its field is read from a row: CSV, Parquet
//! and the tables of `docs/columns.md` and `docs/export.md` are all made from the same columns.

use stacklab_model::{Cell, Estimate, Factor, Interval, Metric};
use std::borrow::Cow;

/// The kind of a column's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Number,
    Figure,
    Text,
}

/// A column without its rows.
#[derive(Debug, Clone)]
pub(crate) struct ColumnHead {
    pub name: Cow<'static, str>,
    /// Text needs none in CSV; Parquet has a type for each column.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code))]
    pub kind: FieldKind,
    /// What the column holds, for the documents: a test writes and compares their tables.
    pub about: Cow<'static, str>,
}

/// A field of a row; absent values are empty in CSV and null in Parquet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Field {
    Number(Option<i64>),
    Figure(Option<f64>),
    Text(Option<String>),
}

impl Field {
    pub(crate) fn into_text(self) -> String {
        let text = match self {
            Field::Number(number) => number.map(|number| number.to_string()),
            Field::Figure(figure) => {
                figure.filter(|figure| figure.is_finite()).map(|figure| figure.to_string())
            }
            Field::Text(text) => text,
        };
        text.unwrap_or_default()
    }
}

/// A column of a table whose rows are made from `Row`.
pub(crate) struct Column<'a, Row> {
    pub head: ColumnHead,
    read: Box<dyn Fn(&Row) -> Field + 'a>,
}

impl<'a, Row: 'a> Column<'a, Row> {
    fn new(
        name: impl Into<Cow<'static, str>>,
        kind: FieldKind,
        about: impl Into<Cow<'static, str>>,
        read: impl Fn(&Row) -> Field + 'a,
    ) -> Self {
        Column { head: ColumnHead { name: name.into(), kind, about: about.into() }, read: Box::new(read) }
    }

    /// Whole numbers; those that Parquet's INT64 cannot hold are its largest.
    pub(crate) fn number(
        name: impl Into<Cow<'static, str>>,
        about: impl Into<Cow<'static, str>>,
        read: impl Fn(&Row) -> Option<u64> + 'a,
    ) -> Self {
        Self::new(name, FieldKind::Number, about, move |row| {
            Field::Number(read(row).map(|number| i64::try_from(number).unwrap_or(i64::MAX)))
        })
    }

    pub(crate) fn figure(
        name: impl Into<Cow<'static, str>>,
        about: impl Into<Cow<'static, str>>,
        read: impl Fn(&Row) -> Option<f64> + 'a,
    ) -> Self {
        Self::new(name, FieldKind::Figure, about, move |row| Field::Figure(read(row)))
    }

    /// Texts that the row or the program has.
    pub(crate) fn text(
        name: impl Into<Cow<'static, str>>,
        about: impl Into<Cow<'static, str>>,
        read: impl Fn(&Row) -> Option<&str> + 'a,
    ) -> Self {
        Self::new(name, FieldKind::Text, about, move |row| Field::Text(read(row).map(str::to_owned)))
    }

    /// Texts that are made for the table.
    pub(crate) fn new_text(
        name: impl Into<Cow<'static, str>>,
        about: impl Into<Cow<'static, str>>,
        read: impl Fn(&Row) -> Option<String> + 'a,
    ) -> Self {
        Self::new(name, FieldKind::Text, about, move |row| Field::Text(read(row)))
    }
}

/// The heads of columns.
pub(crate) fn list_heads<Row>(columns: &[Column<'_, Row>]) -> Vec<ColumnHead> {
    columns.iter().map(|column| column.head.clone()).collect()
}

/// The fields of a row.
pub(crate) fn read_fields<Row>(columns: &[Column<'_, Row>], row: &Row) -> Vec<Field> {
    columns.iter().map(|column| (column.read)(row)).collect()
}

/// The cell of a row, and the factor that the row compares, whose levels stand in other columns.
pub(crate) struct Subject<'a> {
    pub cell: &'a Cell,
    pub compared: Option<Factor>,
}

impl Subject<'_> {
    fn level(&self, factor: Factor) -> Option<String> {
        if self.compared == Some(factor) {
            return None;
        }
        Some(self.cell.level(factor)).filter(|level| !level.is_empty())
    }
}

/// Whether a table has rows that compare levels of any factor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compares {
    Factors,
    Nothing,
}

/// The columns of a cell, without its settings.
pub(crate) fn cell_columns<'a, Row: 'a>(
    compares: Compares,
    find: fn(&Row) -> Subject<'_>,
) -> Vec<Column<'a, Row>> {
    let is_compared = compares == Compares::Factors;
    let or_compared = if is_compared { "; empty if it is the compared factor" } else { "" };
    let or_replica = if is_compared { ", or it is what is compared" } else { "" };
    vec![
        level_column(Factor::Transport, format!("transport protocol{or_compared}"), find),
        level_column(Factor::SizeOf, format!("what size means{or_compared}"), find),
        level_column(Factor::Family, format!("address family{or_compared}"), find),
        Column::number(Factor::Size.name(), format!("bytes{or_compared}"), move |row| {
            find(row).level(Factor::Size)?.parse().ok()
        }),
        level_column(Factor::Replica, format!("replica; empty where there is none{or_replica}"), find),
    ]
}

fn level_column<'a, Row: 'a>(
    factor: Factor,
    about: String,
    find: fn(&Row) -> Subject<'_>,
) -> Column<'a, Row> {
    Column::new_text(factor.name(), about, move |row| find(row).level(factor))
}

/// The columns of a cell's settings, which are texts.
pub(crate) fn setting_columns<'a, Row: 'a>(
    compares: Compares,
    find: fn(&Row) -> Subject<'_>,
) -> Vec<Column<'a, Row>> {
    let or_compared = if compares == Compares::Factors { ", or is what is compared" } else { "" };
    let first = format!("level of this setting; empty if the default applies{or_compared}");
    let mut columns: Vec<Column<'a, Row>> = Vec::new();
    for factor in Factor::ALL.iter().copied().filter(|factor| factor.is_setting()) {
        let about = match columns.first() {
            None => first.clone(),
            Some(column) => format!("as for {}", column.head.name),
        };
        columns.push(level_column(factor, about, find));
    }
    columns
}

/// The columns of a metric; `unit` says what is in its unit.
pub(crate) fn metric_columns<'a, Row: 'a>(
    unit: &'static str,
    find: fn(&Row) -> Metric,
) -> [Column<'a, Row>; 2] {
    [
        Column::text("metric", "the metric", move |row| Some(find(row).name())),
        Column::text("unit", unit, move |row| Some(find(row).unit().symbol())),
    ]
}

/// The columns of an estimate, each name with a prefix; `alike` is the estimate before it that has the same columns.
pub(crate) fn estimate_columns<'a, Row: 'a>(
    prefix: &str,
    alike: Option<&str>,
    find: fn(&Row) -> Option<&Estimate>,
) -> [Column<'a, Row>; 7] {
    let mut columns = [
        Column::number("n", "valid runs with a figure", move |row| Some(find(row)?.n as u64)),
        Column::figure("mean", "mean over runs", move |row| find(row)?.mean),
        Column::figure("sd", "standard deviation over runs (n - 1)", move |row| find(row)?.sd),
        Column::figure("median", "median over runs", move |row| find(row)?.median),
        Column::figure("low", "lower end of the mean's 95 % interval", move |row| {
            Some(find(row)?.interval?.low)
        }),
        Column::figure("high", "upper end of the mean's 95 % interval", move |row| {
            Some(find(row)?.interval?.high)
        }),
        Column::text("missing", "why runs have no figure, if any has none", move |row| {
            find(row)?.missing.as_deref()
        }),
    ];
    for Column { head, .. } in &mut columns {
        head.name = format!("{prefix}_{}", head.name).into();
        if let Some(alike) = alike {
            head.about = format!("as for {alike}").into();
        }
    }
    columns
}

/// `NAME_low` and `NAME_high`, with what each end is.
pub(crate) fn interval_columns<'a, Row: 'a>(
    name: &str,
    about: [&'static str; 2],
    find: fn(&Row) -> Option<Interval>,
) -> [Column<'a, Row>; 2] {
    [
        Column::figure(format!("{name}_low"), about[0], move |row| Some(find(row)?.low)),
        Column::figure(format!("{name}_high"), about[1], move |row| Some(find(row)?.high)),
    ]
}
