//! What people look at. One payload that cannot be decoded spoils no list: a placeholder stands there.

use async_trait::async_trait;
use surefoot_kernel_core::{
    App, AppHealth, AuditRow, EffectRow, EventFilter, EventRow, JournalPage, OperatorStore, Page,
    RestoreInvalid, RunCount, RunDetail, RunFilter, RunId, RunRow, RunSpan, Scope, SessionRow,
    SignalRow, StoreError, StoreFact,
};

use crate::store::Site;
use crate::{CodecStore, View};

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<S: OperatorStore, V: View> OperatorStore for CodecStore<S, V> {
    async fn app_list(&self) -> Result<Vec<App>, StoreError> {
        self.inner.app_list().await
    }

    async fn run_list(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        let mut page = self.inner.run_list(filter).await?;
        page.rows.iter_mut().for_each(|row| self.decode_row(&mut row.run));
        Ok(page)
    }

    async fn run_detail(&self, run: RunId) -> Result<Option<RunDetail>, StoreError> {
        let Some(mut detail) = self.inner.run_detail(run).await? else { return Ok(None) };
        let origin = detail.run.origin.clone();
        let mut decoder = self.decoder(Site::of(&origin));
        decoder.run(&mut detail.run);
        decoder.invocation(&mut detail.invocation);
        if let Ok(journal) = &mut detail.journal {
            decoder.journal(journal);
        }
        match decoder.take_fault() {
            Some(fault) if fault.is_transient() => return Err(fault.of_run(run)),
            // Nothing is concluded from what cannot be read.
            Some(fault) => detail.journal = Err(RestoreInvalid { what: fault.sentence() }),
            None => {}
        }
        Ok(Some(detail))
    }

    async fn journal_list(
        &self,
        run: RunId,
        from: u64,
        limit: u32,
    ) -> Result<Option<JournalPage>, StoreError> {
        let Some(mut page) = self.inner.journal_list(run, from, limit).await? else {
            return Ok(None);
        };
        let mut decoder = self.decoder(Site { app: &page.app, scope: Some(&page.scope) });
        if let Ok(rows) = &mut page.rows {
            decoder.journal(rows);
        }
        match decoder.take_fault() {
            Some(fault) if fault.is_transient() => return Err(fault.of_run(run)),
            Some(fault) => page.rows = Err(RestoreInvalid { what: fault.sentence() }),
            None => {}
        }
        Ok(Some(page))
    }

    async fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<EffectRow>, StoreError> {
        let mut rows = self.inner.effect_list(app, scope, limit).await?;
        for EffectRow { scope, effect, .. } in &mut rows {
            self.decoder(Site { app, scope: Some(scope) }).effect(effect);
        }
        Ok(rows)
    }

    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError> {
        self.inner.event_list(filter).await
    }

    async fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<SignalRow>, StoreError> {
        let mut rows = self.inner.signal_list(app, scope, limit).await?;
        for row in &mut rows {
            let scope = row.scope.clone();
            self.decoder(Site { app, scope: scope.as_ref() }).signal(row);
        }
        Ok(rows)
    }

    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError> {
        self.inner.session_list(app).await
    }

    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError> {
        self.inner.app_health(app).await
    }

    async fn run_timeline(&self, span: RunSpan) -> Result<Vec<RunCount>, StoreError> {
        self.inner.run_timeline(span).await
    }

    async fn store_check(&self) -> Result<Vec<StoreFact>, StoreError> {
        self.inner.store_check().await
    }

    async fn audit_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let mut rows = self.inner.audit_list(app, scope, limit).await?;
        for row in &mut rows {
            let scope = row.scope.clone();
            self.decoder(Site { app, scope: Some(&scope) }).audit(row);
        }
        Ok(rows)
    }
}
