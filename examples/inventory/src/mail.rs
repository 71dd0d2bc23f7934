//! Mail by an outbox: the idempotent action.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use surefoot::prelude::*;

use crate::store::{AppStore, AppTx, sqlx};

/// What `sendEmail` is given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Mail {
    /// The address.
    pub to: String,
    /// What it says.
    pub subject: String,
}

/// What `sendEmail` yields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sent {
    /// The row in the outbox.
    pub mail: i64,
}

/// Why a mail was not put into the outbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MailError {
    /// There is a row already, and it is another mail.
    #[error("the outbox holds another mail under {rule}")]
    Conflict {
        /// Which of the table's two rules says that both are the same mail.
        rule: &'static str,
    },
    /// The database's word.
    #[error("the outbox could not be written")]
    Database(#[from] sqlx::Error),
}

/// Puts a mail into the outbox, once for each effect key.
///
/// It writes in a transaction of its own, so it is not transactional but idempotent: after a crash it runs again under
/// the same key and finds its row. It names its store to have the fence: a worker that was taken for dead and is only
/// slow cannot write any more, since `heartbeat_in` refuses.
#[derive(Clone)]
pub struct SendEmail {
    /// The database with the outbox.
    pub store: AppStore,
}

impl Idempotent<On<AppTx>> for SendEmail {
    const NAME: &'static str = "sendEmail";
    const ABOUT: &'static str = "Sends a mail, once.";
    type Input = Mail;
    type Output = Sent;

    async fn run(&self, cx: &IdempotentCx<On<AppTx>>, mail: Mail) -> ActionResult<Sent> {
        let mut tx = self.store.begin().await?;
        cx.heartbeat_in(&mut tx).await?;
        let sent = put(&mut tx, cx.effect_key(), cx.run_id(), &mail).await?;
        tx.commit().await?;
        Ok(sent)
    }

    async fn plan(&self, _: &StepCx, mail: &Mail) -> PlanResult<Sent> {
        Ok(Planned::new(format!("Write to {}: {}", mail.to, mail.subject)))
    }
}

/// Inserts the mail, or finds it.
///
/// The insert names no conflict target. With `ON CONFLICT (effect_key)` a mail that breaks the OTHER rule of the table
/// would raise a unique violation in whichever of two callers comes second; without a target neither of them gets an
/// error, and reading back by key tells the three cases apart: our row, another mail under our key, no row of ours.
///
/// # Errors
/// [`MailError::Conflict`] if a row with other values stands in the way.
pub async fn put(
    tx: &mut AppTx,
    key: &EffectKey,
    run: RunId,
    mail: &Mail,
) -> Result<Sent, MailError> {
    let sql = "INSERT INTO outbox (effect_key, run, recipient, subject) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let insert = sqlx::query(sql).bind(key.as_str()).bind(run.to_string());
    insert.bind(&mail.to).bind(&mail.subject).execute(&mut *tx).await?;

    let sql = "SELECT id, recipient, subject FROM outbox WHERE effect_key = $1";
    let found: Option<(i64, String, String)> =
        sqlx::query_as(sql).bind(key.as_str()).fetch_optional(&mut *tx).await?;
    match found {
        Some((id, to, subject)) if to == mail.to && subject == mail.subject => {
            Ok(Sent { mail: id })
        }
        Some(_) => Err(MailError::Conflict { rule: "this effect key" }),
        None => Err(MailError::Conflict { rule: "this run, recipient and subject" }),
    }
}
