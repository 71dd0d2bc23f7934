//! Queues, and what was given up in them.

use std::sync::Arc;

use super::{By, Changed, DeadView, Desk, QueueView};
use crate::{DeadPage, Key, Resource, SyncError, Work, WorkId};

/// Letters that are read at once.
const PAGE: usize = 100;

impl Desk {
    /// All jobs, queues and groups, with how much there is.
    ///
    /// # Errors
    /// [`SyncError::Unavailable`].
    pub async fn queues(&self) -> Result<Vec<QueueView>, SyncError> {
        let mut views = Vec::new();
        for (resource, work) in self.works().await? {
            views.push(QueueView::new(&resource, &work.depth().await?));
        }
        Ok(views)
    }

    async fn works(&self) -> Result<Vec<(Resource, Arc<dyn Work>)>, SyncError> {
        let mut works = Vec::new();
        for resource in self.place.resources().await? {
            if resource.kind.is_work() {
                let work = self.place.work(&resource).await?;
                works.push((resource, work));
            }
        }
        Ok(works)
    }

    /// Hands out nothing more of a resource, to nobody; what is held is finished.
    ///
    /// # Errors
    /// Those of [`Inventory::work`](crate::Inventory::work).
    pub async fn pause_queue(&self, resource: &Resource, by: &By) -> Result<Changed, SyncError> {
        let work = self.place.work(resource).await?;
        if work.depth().await?.paused {
            return Ok(Changed::unchanged("it is paused already"));
        }
        self.note("pause", resource, None, by).await?;
        work.pause().await?;
        Ok(Changed::done(format!("{resource} is paused: what is held is finished")))
    }

    /// Hands out work again.
    ///
    /// # Errors
    /// Those of [`Inventory::work`](crate::Inventory::work).
    pub async fn resume_queue(&self, resource: &Resource, by: &By) -> Result<Changed, SyncError> {
        let work = self.place.work(resource).await?;
        if !work.depth().await?.paused {
            return Ok(Changed::unchanged("it is not paused"));
        }
        self.note("resume", resource, None, by).await?;
        work.resume().await?;
        Ok(Changed::done(format!("{resource} hands out work again")))
    }

    /// Dead letters, the oldest first, of one resource or of all.
    ///
    /// # Errors
    /// Those of [`Inventory::work`](crate::Inventory::work).
    pub async fn dead(
        &self,
        resource: Option<&Resource>,
        limit: usize,
    ) -> Result<Vec<DeadView>, SyncError> {
        let works = match resource {
            Some(resource) => vec![(resource.clone(), self.place.work(resource).await?)],
            None => self.works().await?,
        };
        let mut views = Vec::new();
        for (resource, work) in works {
            let mut after = 0;
            while views.len() < limit {
                let page = DeadPage { after, limit: PAGE.min(limit - views.len()) };
                let letters = work.dead_list(page).await?;
                let Some(last) = letters.last() else { break };
                after = last.place;
                views.extend(letters.into_iter().map(|letter| DeadView::new(&resource, letter)));
            }
        }
        Ok(views)
    }

    /// One dead letter.
    ///
    /// # Errors
    /// [`SyncError::NotFound`]; those of [`Inventory::work`](crate::Inventory::work).
    pub async fn dead_show(&self, resource: &Resource, id: &WorkId) -> Result<DeadView, SyncError> {
        let work = self.place.work(resource).await?;
        let letter = work.dead_load(id).await?.ok_or_else(|| missing(resource, id))?;
        Ok(DeadView::new(resource, letter))
    }

    /// Sends a dead letter's data once more, with all its attempts, under a key or one that is made of its id.
    ///
    /// # Errors
    /// Those of [`Work::dead_requeue`].
    pub async fn redrive(
        &self,
        (resource, id): (&Resource, &WorkId),
        key: Option<Key>,
        by: &By,
    ) -> Result<Changed, SyncError> {
        let work = self.place.work(resource).await?;
        let letter = work.dead_load(id).await?.ok_or_else(|| missing(resource, id))?;
        let key = match (key, letter.key) {
            (Some(key), _) => key,
            // It is the same work: a new key would let it run beside its like.
            (None, Some(key)) => key,
            (None, None) => Key::new(id.as_str())?,
        };
        self.note("redrive", resource, Some(id.as_str()), by).await?;
        let sent = work.dead_requeue(id, &key).await?;
        Ok(Changed::done(format!("{id} of {resource} is sent again as {sent} under key `{key}`")))
    }

    /// Removes a dead letter for ever.
    ///
    /// # Errors
    /// [`SyncError::NotFound`], also if somebody else was faster; those of [`Work::dead_delete`].
    pub async fn discard(
        &self,
        (resource, id): (&Resource, &WorkId),
        by: &By,
    ) -> Result<Changed, SyncError> {
        let work = self.place.work(resource).await?;
        work.dead_load(id).await?.ok_or_else(|| missing(resource, id))?;
        self.note("discard", resource, Some(id.as_str()), by).await?;
        if !work.dead_delete(id).await? {
            return Err(missing(resource, id));
        }
        Ok(Changed::done(format!("{id} of {resource} is removed")))
    }
}

fn missing(resource: &Resource, id: &WorkId) -> SyncError {
    SyncError::NotFound { what: format!("dead letter {id} of {resource}") }
}
