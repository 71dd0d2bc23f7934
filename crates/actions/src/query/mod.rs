//! Named statements: the application writes the SQL, a workflow names it and gives it values.

mod statement;

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use surefoot_kernel_core::Code;
use surefoot_language::{
    Access, ActionResult, PlanResult, Planned, StepCx, Stop, Transactional, TransactionalCx,
};

pub use statement::{Bound, Kind, RowError, Statement, StatementTx, Verb};

/// Rows that one statement may yield.
pub const ROWS_MAX: usize = 1_000;
/// The statement yields more rows than it may.
pub const QUERY_TOO_LARGE: &str = "QUERY_TOO_LARGE";
/// A row has a value that is no JSON, or cannot be kept exactly.
pub const QUERY_UNREADABLE: &str = "QUERY_UNREADABLE";

/// A statement by its name, and its values.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct QueryInput {
    /// One of those that the module offers.
    pub statement: String,
    /// By the names that the statement declares; each of them, and no others.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
}

/// What a statement came to.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueryOutput {
    /// The rows of one that reads, by column; none of one that writes.
    pub rows: Vec<Map<String, Value>>,
    /// How many rows one that writes has changed; how many one that reads yields.
    pub affected: u64,
}

/// Runs statements that the application has written, in the step's own transaction.
pub struct Query<Tx> {
    statements: BTreeMap<String, Statement>,
    tx: PhantomData<fn(Tx)>,
}

impl<Tx: StatementTx> Query<Tx> {
    /// With these statements. Of two with one name, the later one.
    pub fn new(statements: impl IntoIterator<Item = Statement>) -> Self {
        let named = statements.into_iter().map(|it| (it.name().to_owned(), it));
        Self { statements: named.collect(), tx: PhantomData }
    }

    fn find(&self, input: &QueryInput) -> Result<(&Statement, Vec<Bound>), Stop> {
        let invalid = |why| Stop::fail(Code::CONFIG_INVALID, why);
        let known = self.statements.get(&input.statement);
        let statement =
            known.ok_or_else(|| invalid(format!("there is no statement `{}`", input.statement)))?;
        Ok((statement, statement.bind(&input.params).map_err(invalid)?))
    }
}

impl<Tx> Clone for Query<Tx> {
    fn clone(&self) -> Self {
        Self { statements: self.statements.clone(), tx: PhantomData }
    }
}

impl<Tx> fmt::Debug for Query<Tx> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query").field("statements", &self.statements.keys()).finish()
    }
}

impl<Tx: StatementTx> Transactional<Tx> for Query<Tx> {
    const NAME: &'static str = "query";
    const ABOUT: &'static str =
        "Runs a statement of the application, together with the step's outcome.";
    type Input = QueryInput;
    type Output = QueryOutput;

    async fn authorize(&self, _: &StepCx, input: &QueryInput) -> ActionResult<Access> {
        self.find(input).map(|_| Access::Allowed)
    }

    async fn run(
        &self,
        cx: &mut TransactionalCx<'_, Tx>,
        input: QueryInput,
    ) -> ActionResult<QueryOutput> {
        let (statement, values) = self.find(&input)?;
        match statement.verb() {
            Verb::Writes => {
                let affected = cx.tx().write(statement.sql(), values).await?;
                Ok(QueryOutput { rows: Vec::new(), affected })
            }
            Verb::Reads => {
                let rows = cx.tx().read(statement.sql(), values, ROWS_MAX).await;
                let rows = rows.map_err(|error| match error {
                    RowError::Unreadable(why) => Stop::fail(QUERY_UNREADABLE, why),
                    RowError::TooMany => Stop::fail(
                        QUERY_TOO_LARGE,
                        format!("`{}` yields more than {ROWS_MAX} rows", statement.name()),
                    ),
                    RowError::Database(error) => Stop::from(error),
                })?;
                let affected = rows.len() as u64;
                Ok(QueryOutput { rows, affected })
            }
        }
    }

    async fn plan(&self, _: &StepCx, input: &QueryInput) -> PlanResult<QueryOutput> {
        Ok(match self.find(input) {
            Ok((statement, values)) => {
                let does = match statement.verb() {
                    Verb::Reads => "Read by",
                    Verb::Writes => "Write by",
                };
                Planned::new(format!("{does} `{}` with {} values", statement.name(), values.len()))
            }
            Err(stop) => {
                Planned::new(format!("Run `{}`", input.statement)).issue(stop.message().to_owned())
            }
        })
    }
}
