//! Lists, health and the audit.

use async_trait::async_trait;

use surefoot_kernel_core::{
    App, AppHealth, AuditRow, EffectRow, EventFilter, EventRow, JournalPage, OperatorStore, Page,
    RunCount, RunDetail, RunFilter, RunId, RunRow, RunSpan, Scope, SessionRow, SignalRow,
    StoreError, StoreFact,
};

use crate::operator;
use crate::store::PostgresStore;

#[async_trait]
impl OperatorStore for PostgresStore {
    async fn app_list(&self) -> Result<Vec<App>, StoreError> {
        self.read(|conn| Box::pin(async move { operator::health::apps(conn).await })).await
    }

    async fn run_list(&self, filter: RunFilter) -> Result<Page<RunRow>, StoreError> {
        let list = self
            .read(move |conn| Box::pin(async move { operator::runs::list(conn, &filter).await }));
        list.await
    }

    async fn run_detail(&self, run: RunId) -> Result<Option<RunDetail>, StoreError> {
        let detail = self.read_now(move |conn, now| {
            Box::pin(async move { operator::runs::detail(conn, run, now).await })
        });
        detail.await
    }

    async fn journal_list(
        &self,
        run: RunId,
        from: u64,
        limit: u32,
    ) -> Result<Option<JournalPage>, StoreError> {
        let page = self.read(move |conn| {
            Box::pin(async move { crate::run::load::journal_page(conn, run, from, limit).await })
        });
        page.await
    }

    async fn effect_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<EffectRow>, StoreError> {
        let (app, scope) = (app.clone(), scope.cloned());
        let list = self.read_now(move |conn, now| {
            Box::pin(async move {
                operator::runs::effects(conn, (&app, scope.as_ref()), limit, now).await
            })
        });
        list.await
    }

    async fn event_list(&self, filter: EventFilter) -> Result<Page<EventRow>, StoreError> {
        let list = self
            .read(move |conn| Box::pin(async move { operator::events::list(conn, &filter).await }));
        list.await
    }

    async fn signal_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<SignalRow>, StoreError> {
        let (app, scope) = (app.clone(), scope.cloned());
        let list = self.read_now(move |conn, now| {
            Box::pin(async move {
                operator::events::signals(conn, (&app, scope.as_ref()), limit, now).await
            })
        });
        list.await
    }

    async fn session_list(&self, app: &App) -> Result<Vec<SessionRow>, StoreError> {
        let app = app.clone();
        let list = self.read_now(move |conn, now| {
            Box::pin(async move { operator::health::sessions(conn, &app, now).await })
        });
        list.await
    }

    async fn app_health(&self, app: &App) -> Result<AppHealth, StoreError> {
        let app = app.clone();
        let health = self.read_now(move |conn, now| {
            Box::pin(async move { operator::health::health(conn, &app, now).await })
        });
        health.await
    }

    async fn run_timeline(&self, span: RunSpan) -> Result<Vec<RunCount>, StoreError> {
        let timeline = self.read(move |conn| {
            Box::pin(async move { operator::timeline::timeline(conn, &span).await })
        });
        timeline.await
    }

    async fn store_check(&self) -> Result<Vec<StoreFact>, StoreError> {
        self.read(|conn| Box::pin(async move { operator::check::check(conn).await })).await
    }

    async fn audit_list(
        &self,
        app: &App,
        scope: Option<&Scope>,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let (app, scope) = (app.clone(), scope.cloned());
        let list = self.read(move |conn| {
            Box::pin(
                async move { operator::health::audit(conn, (&app, scope.as_ref()), limit).await },
            )
        });
        list.await
    }
}
