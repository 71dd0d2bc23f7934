//! Statements on SQLite.

use serde_json::{Map, Value};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Column, Row, Sqlite, SqliteConnection, TypeInfo, ValueRef};
use surefoot_kernel_core::{BoxFuture, Source};

use super::statement::{Bound, RowError, StatementTx};

impl StatementTx for SqliteConnection {
    fn read<'a>(
        &'a mut self,
        sql: &'static str,
        values: Vec<Bound>,
        rows_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Map<String, Value>>, RowError>> {
        Box::pin(async move {
            let rows = bound(sql, values).fetch_all(self).await;
            let rows = rows.map_err(|error| RowError::Database(error.into()))?;
            if rows.len() > rows_max {
                return Err(RowError::TooMany);
            }
            rows.iter().map(object).collect()
        })
    }

    fn write<'a>(
        &'a mut self,
        sql: &'static str,
        values: Vec<Bound>,
    ) -> BoxFuture<'a, Result<u64, Source>> {
        Box::pin(async move { Ok(bound(sql, values).execute(self).await?.rows_affected()) })
    }
}

fn bound(sql: &'static str, values: Vec<Bound>) -> Query<'static, Sqlite, SqliteArguments> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Bound::Text(text) => query.bind(text),
        Bound::Integer(number) => query.bind(number),
        Bound::Number(number) => query.bind(number),
        Bound::Bool(flag) => query.bind(flag),
    })
}

fn object(row: &SqliteRow) -> Result<Map<String, Value>, RowError> {
    let mut members = Map::new();
    for column in row.columns() {
        let name = column.name();
        let value = value(row, column.ordinal(), name)?;
        if members.insert(name.to_owned(), value).is_some() {
            let why = format!("two columns have the name `{name}`: give one another one with `AS`");
            return Err(RowError::Unreadable(why));
        }
    }
    Ok(members)
}

fn value(row: &SqliteRow, at: usize, name: &str) -> Result<Value, RowError> {
    let database = |error: sqlx::Error| RowError::Database(error.into());
    let unreadable = |what: &str| {
        Err(RowError::Unreadable(format!("the column `{name}` has {what}, which is no JSON")))
    };
    let raw = row.try_get_raw(at).map_err(database)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    match raw.type_info().name() {
        "INTEGER" => row.try_get::<i64, _>(at).map(Value::from).map_err(database),
        "BOOLEAN" => row.try_get::<bool, _>(at).map(Value::from).map_err(database),
        "TEXT" => row.try_get::<String, _>(at).map(Value::from).map_err(database),
        "REAL" => {
            let number = row.try_get::<f64, _>(at).map_err(database)?;
            serde_json::Number::from_f64(number)
                .map(Value::Number)
                .map_or_else(|| unreadable("a number that is not finite"), Ok)
        }
        other => unreadable(&format!("a value of type {other}")),
    }
}
