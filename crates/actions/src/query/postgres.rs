//! Statements on PostgreSQL. The server itself writes rows as JSON, so that every type has its usual form.

use serde_json::{Map, Value};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Row, SqlSafeStr};
use surefoot_kernel_core::payload::Payload;
use surefoot_kernel_core::{BoxFuture, Source};

use super::statement::{Bound, RowError, StatementTx};

impl StatementTx for PgConnection {
    fn read<'a>(
        &'a mut self,
        sql: &'static str,
        values: Vec<Bound>,
        rows_max: usize,
    ) -> BoxFuture<'a, Result<Vec<Map<String, Value>>, RowError>> {
        Box::pin(async move {
            let limit = rows_max.saturating_add(1);
            // Made of the application's own text and a number.
            let sql = AssertSqlSafe(format!(
                "SELECT row_to_json(surefoot_row)::text FROM ({sql}) AS surefoot_row LIMIT {limit}"
            ));
            let rows = bound(sql, values).fetch_all(self).await;
            let rows = rows.map_err(|error| RowError::Database(error.into()))?;
            if rows.len() > rows_max {
                return Err(RowError::TooMany);
            }
            let texts = rows.iter().map(|row| row.try_get::<String, _>(0));
            texts
                .map(|text| object(&text.map_err(|error| RowError::Database(error.into()))?))
                .collect()
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

fn bound(sql: impl SqlSafeStr, values: Vec<Bound>) -> Query<'static, Postgres, PgArguments> {
    values.into_iter().fold(sqlx::query(sql), |query, value| match value {
        Bound::Text(text) => query.bind(text),
        Bound::Integer(number) => query.bind(number),
        Bound::Number(number) => query.bind(number),
        Bound::Bool(flag) => query.bind(flag),
    })
}

fn object(text: &str) -> Result<Map<String, Value>, RowError> {
    let unreadable = |why: String| RowError::Unreadable(why);
    let row = Payload::parse(text).map_err(|error| {
        unreadable(format!("a row cannot be kept exactly at `{}`: {}", error.pointer, error.rule))
    })?;
    let row = row.into_value();
    let Value::Object(members) = row else {
        return Err(unreadable(format!("a row is no object, but {row}")));
    };
    Ok(members)
}
