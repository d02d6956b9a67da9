//! One way to two engines: the same statements run on SQLite and on PostgreSQL.
//!
//! Parameters are `$1`, `$2`, ..; numbers are BIGINT. Text in braces is for PostgreSQL only: `{FOR UPDATE ..}` locks
//! rows. SQLite has one writer at a time, and needs no such lock.

use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::collections::HashMap;
use std::error::Error;

pub(super) type DbError = Box<dyn Error + Sync + Send>;
type DbResult<T> = Result<T, DbError>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Int(i64),
    Text(String),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Int(number.into())
    }
}

impl<T: AsRef<str> + ?Sized> From<&T> for Value {
    fn from(text: &T) -> Self {
        Value::Text(text.as_ref().to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl ToSql for Value {
    fn to_sql(&self, kind: &Type, out: &mut bytes::BytesMut) -> DbResult<IsNull> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(number) => number.to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        <i64 as ToSql>::accepts(kind) || <String as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Integer(*number),
            Value::Text(text) => text.as_str().into(),
        }))
    }
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> DbResult<Self> {
        match *kind {
            Type::INT8 => i64::from_sql(kind, raw).map(Value::Int),
            _ => String::from_sql(kind, raw).map(Value::Text),
        }
    }

    fn from_sql_null(_: &Type) -> DbResult<Self> {
        Ok(Value::Null)
    }

    fn accepts(kind: &Type) -> bool {
        <Value as ToSql>::accepts(kind)
    }
}

pub(super) struct Row(Vec<Value>);

impl Row {
    pub(super) fn int(&self, column: usize) -> DbResult<i64> {
        match &self.0[column] {
            Value::Int(number) => Ok(*number),
            Value::Null => Err(format!("column {column} is empty").into()),
            Value::Text(_) => Err(format!("column {column} is not a number").into()),
        }
    }

    /// A number of a pair, block or attempt.
    pub(super) fn number(&self, column: usize) -> DbResult<u32> {
        Ok(u32::try_from(self.int(column)?)?)
    }

    pub(super) fn text(&self, column: usize) -> DbResult<String> {
        self.maybe_text(column)?.ok_or_else(|| format!("column {column} is empty").into())
    }

    pub(super) fn maybe_text(&self, column: usize) -> DbResult<Option<String>> {
        match &self.0[column] {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text.clone())),
            Value::Int(_) => Err(format!("column {column} is not a text").into()),
        }
    }
}

pub(super) enum Db {
    Sqlite(Connection),
    Postgres(Box<postgres::Client>, HashMap<&'static str, postgres::Statement>),
}

/// A transaction. It is rolled back unless its function succeeds.
pub(super) enum Tx<'a> {
    Sqlite(rusqlite::Transaction<'a>),
    Postgres(postgres::Transaction<'a>, &'a mut HashMap<&'static str, postgres::Statement>),
}

impl Db {
    /// Whether the server has ended the connection.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Db::Postgres(client, _) if client.is_closed())
    }

    pub(super) fn transaction<T>(&mut self, run: impl FnOnce(&mut Tx<'_>) -> DbResult<T>) -> DbResult<T> {
        let mut tx = match self {
            Db::Sqlite(connection) => Tx::Sqlite(connection.transaction()?),
            Db::Postgres(client, statements) => Tx::Postgres(client.transaction()?, statements),
        };
        let result = run(&mut tx)?;
        match tx {
            Tx::Sqlite(transaction) => transaction.commit()?,
            Tx::Postgres(transaction, _) => transaction.commit()?,
        }
        Ok(result)
    }
}

impl Tx<'_> {
    pub(super) fn batch(&mut self, statements: &str) -> DbResult<()> {
        match self {
            Tx::Sqlite(transaction) => Ok(transaction.execute_batch(statements)?),
            Tx::Postgres(transaction, _) => Ok(transaction.batch_execute(statements)?),
        }
    }

    pub(super) fn has_table(&mut self, name: &str) -> DbResult<bool> {
        let sql = match self {
            Tx::Sqlite(_) => "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1",
            Tx::Postgres(..) => {
                "SELECT count(*) FROM information_schema.tables
                 WHERE table_schema = current_schema() AND table_name = CAST($1 AS TEXT)"
            }
        };
        Ok(self.row(sql, &[name.into()])?.ok_or("no count")?.int(0)? > 0)
    }

    /// Runs a statement that returns no rows.
    pub(super) fn execute(&mut self, sql: &'static str, values: &[Value]) -> DbResult<()> {
        self.rows(sql, values).map(drop)
    }

    pub(super) fn rows(&mut self, sql: &'static str, values: &[Value]) -> DbResult<Vec<Row>> {
        match self {
            Tx::Sqlite(transaction) => {
                let mut statement = transaction.prepare_cached(&without_locks(sql))?;
                for (number, value) in (1..).zip(values) {
                    let place = statement.parameter_index(&format!("${number}"))?;
                    statement.raw_bind_parameter(place.ok_or("a parameter is not used")?, value)?;
                }
                let columns = statement.column_count();
                let mut found = Vec::new();
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next()? {
                    let mut cells = Vec::with_capacity(columns);
                    for column in 0..columns {
                        cells.push(read_value(row.get_ref(column)?)?);
                    }
                    found.push(Row(cells));
                }
                Ok(found)
            }
            Tx::Postgres(transaction, statements) => {
                let statement = prepare_statement(transaction, statements, sql)?;
                let parameters: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
                let mut found = Vec::new();
                for row in transaction.query(&statement, &parameters)? {
                    let mut cells = Vec::with_capacity(row.len());
                    for column in 0..row.len() {
                        cells.push(row.try_get(column)?);
                    }
                    found.push(Row(cells));
                }
                Ok(found)
            }
        }
    }

    pub(super) fn row(&mut self, sql: &'static str, values: &[Value]) -> DbResult<Option<Row>> {
        Ok(self.rows(sql, values)?.into_iter().next())
    }
}

fn read_value(value: ValueRef<'_>) -> DbResult<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        other => Value::Text(other.as_str()?.to_owned()),
    })
}

fn without_locks(sql: &str) -> String {
    match (sql.find('{'), sql.rfind('}')) {
        (Some(from), Some(to)) => format!("{}{}", &sql[..from], &sql[to + 1..]),
        _ => sql.to_owned(),
    }
}

fn prepare_statement(
    transaction: &mut postgres::Transaction<'_>,
    statements: &mut HashMap<&'static str, postgres::Statement>,
    sql: &'static str,
) -> DbResult<postgres::Statement> {
    if let Some(known) = statements.get(sql) {
        return Ok(known.clone());
    }
    let statement = transaction.prepare(&sql.replace(['{', '}'], ""))?;
    statements.insert(sql, statement.clone());
    Ok(statement)
}
