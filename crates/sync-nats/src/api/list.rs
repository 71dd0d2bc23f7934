//! Many messages at once: many requests on their way together, each answered by the leader.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;
use serde_json::json;
use surefoot_sync_core::SyncError;

use super::{Api, Failure, Stored};

/// So many requests are on their way at once.
pub(crate) const ASK_AT_ONCE: usize = 64;

impl Api {
    /// The last message of every subject of a filter, by subject. What is stored meanwhile may be in it or not.
    pub(crate) async fn lasts(&self, stream: &str, filter: &str) -> Result<Vec<Stored>, SyncError> {
        let subjects = self.subjects(stream, filter).await?;
        let last = async |subject: String| self.last(stream, &subject).await;
        let asked = subjects.into_iter().map(last);
        // One whose message is gone meanwhile is none.
        let lasts = stream::iter(asked).buffered(ASK_AT_ONCE);
        lasts.try_filter_map(async |last| Ok(last)).try_collect().await
    }

    /// The messages of a filter from one place to another, in order.
    pub(crate) async fn between(
        &self,
        stream: &str,
        filter: &str,
        (from, until): (u64, u64),
    ) -> Result<Vec<Stored>, SyncError> {
        let count = until.saturating_add(1).saturating_sub(from);
        // Stretches that are walked through side by side.
        let length = count.div_ceil(u64::try_from(ASK_AT_ONCE).unwrap_or(1)).max(1);
        let starts = (0..count).step_by(usize::try_from(length).unwrap_or(usize::MAX));
        let walks = starts.map(|start| {
            let from = from.saturating_add(start);
            let last = from.saturating_add(length - 1).min(until);
            self.walk(stream, filter, (from, last))
        });
        let found: Vec<Vec<Stored>> =
            stream::iter(walks).buffered(ASK_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn walk(
        &self,
        stream: &str,
        filter: &str,
        (mut from, until): (u64, u64),
    ) -> Result<Vec<Stored>, SyncError> {
        let mut found = Vec::new();
        while from <= until {
            match self.next(stream, from, filter).await?.filter(|stored| stored.seq <= until) {
                Some(stored) => {
                    from = stored.seq.saturating_add(1);
                    found.push(stored);
                }
                None => break,
            }
        }
        Ok(found)
    }

    async fn subjects(&self, stream: &str, filter: &str) -> Result<Vec<String>, SyncError> {
        #[derive(Deserialize)]
        struct Answer {
            state: State,
            #[serde(default)]
            total: usize,
        }
        #[derive(Deserialize)]
        struct State {
            #[serde(default)]
            subjects: BTreeMap<String, u64>,
        }
        let operation = "list subjects";
        let subject = format!("$JS.API.STREAM.INFO.{stream}");
        let mut all = Vec::new();
        loop {
            let body = json!({ "subjects_filter": filter, "offset": all.len() });
            let answer = self.insist::<Answer>(operation, &subject, &body).await?;
            let Answer { state, total } =
                answer.map_err(|error| Failure::Refused(error).into_error(operation))?;
            let is_last = state.subjects.is_empty();
            all.extend(state.subjects.into_keys());
            if is_last || all.len() >= total {
                return Ok(all);
            }
        }
    }
}
